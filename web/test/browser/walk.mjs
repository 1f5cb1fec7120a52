// Looks at every visible element of a page as a reader would. Runs inside of the page.

/** One line each of what is wrong: text that is cut without a sign of it, that lies over other text, that breaks inside a word. */
export function walk() {
  const wrong = [];
  const name = (element) => `${element.tagName.toLowerCase()}.${element.className?.baseVal ?? element.className} "${element.textContent.trim().slice(0, 40)}"`;
  // What is there for screen readers alone is clipped to nothing.
  const is_clipped = (element) => {
    for (let up = element; up; up = up.parentElement) if (getComputedStyle(up).clipPath === "inset(50%)") return true;
    return false;
  };
  const visible = (element) => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && !element.closest("dialog:not([open])") && !is_clipped(element);
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.textContent.trim();
    const element = node.parentElement;
    if (!text || ["SCRIPT", "STYLE", "OPTION", "NOSCRIPT"].includes(element.tagName) || !visible(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    let rects = [...range.getClientRects()].filter((rect) => rect.width > 0.5 && rect.height > 0.5);
    // What ends in "…" is as wide as its box.
    const ends = element.closest(".cut")?.getBoundingClientRect();
    if (ends) rects = rects.map((rect) => new DOMRect(rect.x, rect.y, Math.max(0, Math.min(rect.right, ends.right) - rect.x), rect.height));
    if (rects.length === 0) continue;
    // Inside of what clips it: cut unless it scrolls or says "…".
    for (let up = element; up && up !== document.body; up = up.parentElement) {
      const style = getComputedStyle(up);
      if (style.overflowX === "visible" && style.overflowY === "visible") continue;
      const scrolls = /auto|scroll/.test(style.overflowX + style.overflowY);
      const box = up.getBoundingClientRect();
      for (const rect of rects) {
        const is_cut = rect.right > box.right + 1.5 || rect.left < box.left - 1.5;
        if (is_cut && !scrolls && style.textOverflow !== "ellipsis") wrong.push(`cut: ${name(element)} in ${name(up).slice(0, 40)}`);
      }
      break;
    }
    if (rects.some((rect) => rect.right > document.documentElement.clientWidth + 1) && !element.closest(".tabs, .menu") && (element.closest(".report") || !element.closest(".scroll"))) wrong.push(`beyond the page: ${name(element)}`);
    // A word on two lines: its letters are at two heights.
    if (rects.length > 1 && !element.closest(".long, .code, .detail, .note, dd, .where")) {
      for (const word of node.textContent.matchAll(/\S+/g)) {
        if (/[-/]/.test(word[0]) || word[0].length > 60) continue;
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        const tops = new Set([...range.getClientRects()].filter((rect) => rect.width > 0.5).map((rect) => Math.round(rect.top)));
        if (tops.size > 1) wrong.push(`broken inside a word: ${word[0].slice(0, 40)} in ${name(element)}`);
      }
    }
    if (!element.closest(".tooltip")) boxes.push(...rects.map((rect) => ({ rect, element })));
  }
  // What scrolled out of sight overlaps nothing that is seen.
  const seen = boxes.filter(({ rect, element }) => {
    const x = rect.left + rect.width / 2;
    const y = rect.top + rect.height / 2;
    const hit = document.elementFromPoint(x, y);
    return hit && (hit === element || element.contains(hit) || hit.contains(element));
  });
  for (let i = 0; i < seen.length; ++i)
    for (let k = i + 1; k < seen.length; ++k) {
      const [a, b] = [seen[i].rect, seen[k].rect];
      if (seen[i].element.contains(seen[k].element) || seen[k].element.contains(seen[i].element)) continue;
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 4) wrong.push(`overlap: ${name(seen[i].element)} and ${name(seen[k].element)}`);
    }
  // The page is clipped at its right end: what lies beyond it is lost, unless something around it scrolls or clips.
  const clips = (element) => element !== document.body && (/auto|scroll|hidden|clip/.test(getComputedStyle(element).overflowX) || (!!element.parentElement && clips(element.parentElement)));
  for (const element of document.querySelectorAll("body *")) {
    const box = element.getBoundingClientRect();
    if (box.width > 0 && box.right > innerWidth + 1 && !clips(element.parentElement) && visible(element)) wrong.push(`ends at ${Math.round(box.right)} of ${innerWidth}: ${name(element)}`);
  }
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth + 1) wrong.push(`the page is ${document.documentElement.scrollWidth} wide`);
  return [...new Set(wrong)];
}
