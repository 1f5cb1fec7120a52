// The report: sections of sentences, lists, tables and stacks.
import { computed } from "@preact/signals";
import type { Cell, Document, Evidence, Item, Part, Row, Section, Sentence } from "../data/types.ts";
import * as format from "../format.ts";
import { file, store } from "../state/run.ts";
import { go, part, view } from "../state/view.ts";
import type { View } from "../state/view.ts";
import { ChartView } from "./chart.tsx";
import { CopyButton, Joints } from "./parts.tsx";

const LONG_TEXT = 4000;

/** Whether the answers are there: a page in a file keeps only some. */
function is_kept(evidence: Evidence): boolean {
  const query = { file: part("file").value, device: evidence.device, filter: evidence.filter, by: "category", from: 0 };
  return !evidence.filter || (store.value?.has("levels", query) ?? false);
}
/** The change of the view that shows a finding's evidence. */
export function evidence_patch(evidence: Evidence | undefined): Partial<View> | null {
  if (!evidence) return null;
  // It is about nothing else: what was chosen before goes.
  const patch: Partial<View> = { from: 0, to: 0, range_from: -1, range_to: -1, moment: -1, what: "at", filter: evidence.filter ?? "", focus: "", block: -1 };
  if (evidence.view) patch.tab = evidence.view;
  if (evidence.event !== undefined) patch.moment = evidence.event;
  if (evidence.from !== undefined && evidence.to !== undefined)
    Object.assign(patch, { range_from: evidence.from, range_to: evidence.to, what: "left" });
  if (evidence.by) patch.by = evidence.by;
  if (evidence.device !== undefined) patch.device = evidence.device;
  if (evidence.block !== undefined) Object.assign(patch, { block: evidence.block, tab: "block" });
  return patch;
}

function EvidenceLink({ evidence }: { evidence: Evidence }) {
  return is_kept(evidence) ? <div><button class="link" onClick={() => look_at(evidence)}>Show the evidence</button></div> : null;
}
/** Where the page is one long column the chart may be far above. The link is gone: the focus goes to the tab. */
function look_at(evidence: Evidence): void {
  go(evidence_patch(evidence)!);
  document.getElementById(`tab-${view.peek().tab}`)?.focus({ preventScroll: true });
  document.scrollingElement?.scrollTo(0, 0);
}
/** Of a row: as small as one of many has to be. */
function EvidenceButton({ evidence, of }: { evidence: Evidence; of: string }) {
  if (!is_kept(evidence)) return null;
  const text = `Show in the chart and the holders: ${format.plain(of, 80)}`;
  return <button class="plain icon show" aria-label={text} title={text} onClick={() => look_at(evidence)}>→</button>;
}

function SentenceLine({ sentence }: { sentence: Sentence }) {
  const tone = sentence.tone ?? "plain";
  return (
    <p class={tone}>
      {sentence.label ? <span class="label">{format.plain(sentence.label, 100)}</span> : null}
      <Joints is_prose text={format.plain(sentence.text, LONG_TEXT)} />
    </p>
  );
}
function ItemLine({ item }: { item: Item }) {
  return (
    <li class={`item ${item.tone ?? "plain"}`}>
      <div>
        {item.label ? <span class="label">{format.plain(item.label, 100)}</span> : null}
        <span class="long"><Joints is_prose text={format.plain(item.text, LONG_TEXT)} /></span>
      </div>
      {(item.details ?? []).map((detail, i) => (
        <div class="detail" key={i}>
          {detail.label ? <span class="label">{format.plain(detail.label, 100)}</span> : null}
          <Joints is_prose text={format.plain(detail.text, LONG_TEXT)} />
        </div>
      ))}
      {item.evidence ? <EvidenceLink evidence={item.evidence} /> : null}
    </li>
  );
}
function CellText({ cell }: { cell: Cell }) {
  return (
    <>
      <span class={cell.is_code ? "code" : ""} style={{ fontWeight: cell.is_strong ? 600 : undefined, paddingLeft: cell.depth ? `${cell.depth * 14}px` : undefined }}>
        <Joints is_prose={!cell.is_code} text={format.plain(cell.text, LONG_TEXT)} />
      </span>
      {cell.note ? <span class="note"> {format.plain(cell.note, LONG_TEXT)}</span> : null}
    </>
  );
}
function RowLine({ row, columns }: { row: Row; columns: { title: string; is_number?: boolean }[] }) {
  const last = row.cells.length - 1;
  return (
    <tr>
      {row.cells.map((cell, i) => (
        <td key={i} data-title={format.plain(columns[i]?.title ?? "", 60)} class={columns[i]?.is_number ? "right" : "wide"} colSpan={i === last && columns.length > row.cells.length ? columns.length - last : 1}>
          {/* It floats: before the text it stays in the text's first line. */}
          {i === last && row.evidence ? <EvidenceButton evidence={row.evidence} of={row.cells[last].text} /> : null}
          {i === last && row.details?.length ? (
            <details>
              <summary><CellText cell={cell} /></summary>
              {row.details.map((part, k) => <PartView part={part} key={k} />)}
            </details>
          ) : (
            <CellText cell={cell} />
          )}
          {i === last && row.share !== undefined && row.share >= 0 ? <span class="share" style={{ width: `${Math.min(100, 100 * row.share)}%` }} /> : null}
        </td>
      ))}
    </tr>
  );
}
function PartView({ part: of }: { part: Part }) {
  switch (of.kind) {
    case "sentence":
      return <SentenceLine sentence={of} />;
    case "list":
      return <ul>{of.items.map((item, i) => <ItemLine item={item} key={i} />)}</ul>;
    case "table": {
      const titled = of.columns.some((column) => column.title);
      return (
        <div class="tablebox" tabIndex={0} role="region" aria-label="Table">
          <table class="data">
            {titled ? (
              <thead>
                <tr>{of.columns.map((column, i) => <th key={i} class={column.is_number ? "right" : ""}>{format.plain(column.title)}</th>)}</tr>
              </thead>
            ) : null}
            <tbody>{of.rows.map((row, i) => <RowLine row={row} columns={of.columns} key={i} />)}</tbody>
          </table>
          {of.left_out_text ? <p class="note" style={{ padding: "6px 10px" }}>{format.plain(of.left_out_text)}</p> : null}
        </div>
      );
    }
    case "stack":
      return (
        <div>
          <ol class="frames">
            {of.frames.map((frame, i) => (
              <li key={i} class={frame.is_user_code ? "user" : ""} title={format.plain(frame.text, 2000)}>
                <span class="code">{format.plain(frame.short_text ?? frame.text, 1000)}</span>
              </li>
            ))}
          </ol>
          <CopyButton label="Copy stack" text={() => of.frames.map((frame) => frame.text).join("\n")} />
        </div>
      );
    case "chart":
      return <ChartView chart={of} />;
  }
}
export function SectionView({ section }: { section: Section }) {
  const parts = section.parts.map((part, i) => <PartView part={part} key={i} />);
  const link = section.evidence ? <EvidenceLink evidence={section.evidence} /> : null;
  if (section.is_folded)
    return (
      <details class="fold">
        <summary><h2 style={{ display: "inline" }}>{format.plain(section.title)}</h2></summary>
        {parts}
        {link}
      </details>
    );
  return (
    <section>
      {section.title ? <h2>{format.plain(section.title)}</h2> : null}
      {parts}
      {link}
    </section>
  );
}

export function DocumentView({ document }: { document: Document }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Report">
      <article class="report">
        <h1><Joints is_prose text={format.plain(document.title)} /></h1>
        {document.sections.map((section, i) => <SectionView section={section} key={i} />)}
      </article>
    </div>
  );
}
export function Report() {
  const document = file.value?.document;
  return document ? <DocumentView document={document} /> : <div class="empty">No report for this file.</div>;
}

/** The sections of the Findings view, by title. */
const TELLING = /^(findings|what to change|out of memory|what causes|what was lost)/i;
export const telling = computed<Section[]>(() => (file.value?.document?.sections ?? []).filter((section) => TELLING.test(section.title)));
/** The findings themselves: advice and the causes of a refusal stand beside them, and are not counted. */
export const findings_of = (sections: Section[]): Item[] =>
  sections
    .filter((section) => /^findings/i.test(section.title))
    .flatMap((section) => section.parts.flatMap((part) => (part.kind === "list" ? part.items : [])));
export const findings_count = computed(() => findings_of(telling.value).length);
/** The finding to begin with; none where none is worse than a note. They are sorted. */
export const worst_finding = computed<Item | undefined>(() =>
  findings_of(telling.value).find((item) => item.tone === "bad" || item.tone === "warning"),
);
export function Findings() {
  const more = (file.value?.findings ?? 0) - findings_count.value;
  if (telling.value.length === 0) return <div class="empty">No findings and no suggestions.</div>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Findings">
      <article class="report">
        {more > 0 ? <p class="note">{format.plural(more, "finding")} of growth {more === 1 ? "is" : "are"} told with the lines of the same memory.</p> : null}
        {telling.value.map((section, i) => <SectionView section={{ ...section, is_folded: false }} key={i} />)}
      </article>
    </div>
  );
}
