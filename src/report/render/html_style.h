// The look of the HTML report.
#pragma once

namespace gpumemprof {

inline constexpr const char* kHtmlStyle = R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#59636e;--line:#d8dee4;--band:#7aa7e8;
--top:#1f5fbf;--peak:#c4320a;--bar:#dbe7fa;--warn:#fff3d6;--lost:#ffe1da}
@media (prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e4e8ec;--dim:#9aa4af;--line:#333a42;--band:#2f5d9e;
--top:#7fb0f5;--peak:#ff8a5c;--bar:#22364f;--warn:#3b3113;--lost:#48201a}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1100px;padding:16px;background:var(--bg);color:var(--fg);
font:16px/1.45 system-ui,sans-serif;overflow-wrap:break-word}
h1{font-size:1.3rem;margin:.2em 0}h2{font-size:1.1rem;margin:1.6em 0 .4em}
header p,.dim,figcaption,th{color:var(--dim)}
code,.n{font-family:ui-monospace,monospace;font-size:.875em}
ul{list-style:none;margin:.6em 0;padding:0}li{padding:.4em 0}li p{margin:.2em 0 .2em 1em;max-width:46em}
section>p{max-width:46em}.strong{font-weight:600}
.box{padding:.5em .8em;border-radius:6px;margin:.5em 0}.warn{background:var(--warn)}.lost{background:var(--lost)}
header p.box{color:var(--fg)}
.note{border:1px solid var(--line)}li.box{margin:.5em 0}
figure{margin:.8em 0}.series svg{height:auto}
.plot{display:flex;gap:6px}.y{display:flex;flex-direction:column;justify-content:space-between;
text-align:right;font-size:.75rem;color:var(--dim);white-space:nowrap;margin:-.55em 0}
.area{position:relative;flex:1;min-width:0;height:240px;border:1px solid var(--line)}
svg{display:block;width:100%;height:100%}
.grid path{stroke:var(--line);vector-effect:non-scaling-stroke}.base{fill:var(--bar)}.band{fill:var(--band)}
.top{fill:none;stroke:var(--top);stroke-width:1.5;vector-effect:non-scaling-stroke}
.peak{stroke:var(--peak);stroke-width:1.5;stroke-dasharray:4 3;vector-effect:non-scaling-stroke}
.mid{fill:none;stroke:#3c8d40;stroke-width:1.5;vector-effect:non-scaling-stroke}
figure path.peak{fill:none}.segments{width:100%}.segments .live{fill:var(--top)}
.segments .pinned{fill:var(--peak)}.segments .whole{fill:var(--bar)}
.step{stroke:var(--dim);stroke-width:.7;opacity:.6;vector-effect:non-scaling-stroke}.phase{fill:var(--fg);opacity:.35}
b.k{font-weight:600}b.k.mid{color:#3c8d40}b.k.top,b.k.live{color:var(--top)}
b.k.peak,b.k.pinned{color:var(--peak)}
.tips rect{fill:transparent}.mark{position:absolute;top:2px;font-size:.8rem;color:var(--peak);white-space:nowrap;
padding:0 5px;background:var(--bg);border-radius:4px;opacity:.92}.mark.before{transform:translateX(-100%)}
figcaption{display:flex;justify-content:space-between;gap:12px;font-size:.75rem;margin-top:.9em;text-align:center}
figcaption span:first-child,figcaption span:last-child{white-space:nowrap}
table{border-collapse:collapse;width:100%}th{font-weight:normal;text-align:left;font-size:.85rem}
td,th{padding:.35em .5em .35em 0;border-bottom:1px solid var(--line);vertical-align:top}
.n{text-align:right;white-space:nowrap}td.n,th.n{padding-right:1em}
td.w{width:100%;min-width:14em;overflow-wrap:anywhere}
.bar{height:4px;background:var(--bar);border-radius:2px;margin-top:3px}.bar i{display:block;height:100%;
background:var(--top);border-radius:2px}
summary{cursor:pointer}summary:focus-visible{outline:2px solid var(--top)}
.stack{margin:.4em 0;padding:.3em 0 .3em .5em;border-left:3px solid var(--line);
font:.8125rem/1.5 ui-monospace,monospace}.stack p{margin:0;padding-left:1.5em;text-indent:-1.5em}
.stack .u{color:var(--top);font-weight:600}.scroll{overflow-x:auto}
.a,.b{--run:#b35c00}.b{--run:#1f5fbf}
@media (prefers-color-scheme:dark){.a{--run:#f0a35e}.b{--run:#7fb0f5}}
svg .a,svg .b{fill:none;stroke:var(--run);stroke-width:1.5;vector-effect:non-scaling-stroke}
.legend span{margin-right:1.2em}
.legend i{display:inline-block;width:1em;height:3px;vertical-align:middle;background:var(--run)}
@media (max-width:600px){body{padding:10px}h1{font-size:1.1rem}.area{height:180px}td,th{padding-right:.4em}
table.rows tr{display:flex;flex-wrap:wrap;border-bottom:1px solid var(--line)}table.rows td,table.rows th{border:0}
table.rows .n{min-width:5.5em}table.rows td.w{flex-basis:100%}}
)css";

}  // namespace gpumemprof
