/// The style of the operator's pages: light and dark, one column on a phone. Contrasts meet WCAG 2.2 AA.
enum PageStyle {
    static let css = """
        :root {
          color-scheme: light dark;
          --back: #ffffff; --raised: #f4f5f7; --line: #c9ced6; --text: #1b1f24; --quiet: #545d68;
          --link: #0b57b7; --good: #14682f; --warning: #7a4b00; --bad: #a5151f; --graph: #0b57b7; --area: #d5e4f7;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --back: #14171b; --raised: #1f242a; --line: #3f4852; --text: #e8eaed; --quiet: #a9b2bd;
            --link: #8ab8ff; --good: #6fd08c; --warning: #f0b650; --bad: #ff9a94; --graph: #8ab8ff; --area: #26405f;
          }
        }
        * { box-sizing: border-box; }
        html { scroll-padding-top: 1rem; }
        body { margin: 0; background: var(--back); color: var(--text); font: 0.95rem/1.45 system-ui, sans-serif; }
        header, main, nav, footer { max-width: 78rem; margin: 0 auto; padding: 0.5rem 1rem; }
        header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0.25rem 1.25rem; padding-top: 1rem; }
        header p { margin: 0; }
        #link { margin-left: auto; }
        h1 { font-size: 1.5rem; margin: 0; }
        h2 { font-size: 1.1rem; margin: 0 0 0.5rem; }
        h3 { font-size: 0.95rem; margin: 0.75rem 0 0.25rem; }
        h4 { font-size: 0.95rem; margin: 1rem 0 0.25rem; overflow-wrap: anywhere; }
        nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; margin: 0; padding: 0; list-style: none; }
        nav a { display: inline-block; padding: 0.25rem 0; }
        footer nav { padding: 0; }
        a { color: var(--link); }
        .skip { position: absolute; left: -100rem; background: var(--back); padding: 0.5rem 1rem; z-index: 1; }
        .skip:focus { left: 0; top: 0; }
        :focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
        main { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem; align-items: start; }
        main:focus { outline: none; }
        section { background: var(--raised); border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.75rem 1rem; min-width: 0; }
        .wide { grid-column: 1 / -1; }
        .quiet { color: var(--quiet); margin: 0.25rem 0; }
        noscript { grid-column: 1 / -1; }
        ul { padding-left: 1.1rem; margin: 0.25rem 0; }
        li { overflow-wrap: anywhere; }
        .facts { display: flex; flex-wrap: wrap; gap: 0.1rem 1.5rem; padding: 0; list-style: none; }
        .tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 1rem; }
        .tile h3 { color: var(--quiet); font-weight: normal; margin: 0; }
        .figure { font-size: 1.6rem; margin: 0; font-variant-numeric: tabular-nums; }
        .unit { font-size: 0.85rem; color: var(--quiet); }
        .graph { display: block; width: 100%; height: 3rem; }
        .graph polyline { fill: none; stroke: var(--graph); stroke-width: 2; vector-effect: non-scaling-stroke; }
        .graph polygon { fill: var(--area); }
        table { border-collapse: collapse; width: 100%; }
        caption { text-align: left; color: var(--quiet); padding: 0 0 0.25rem; }
        th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.75rem 0.3rem 0; border-bottom: 1px solid var(--line);
          overflow-wrap: anywhere; }
        thead th { color: var(--quiet); font-weight: normal; overflow-wrap: normal; }
        tbody th { font-weight: 600; }
        tbody tr:last-child > * { border-bottom: none; }
        .number { text-align: right; padding-right: 1.75rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
        .state { font-weight: 600; }
        .good { color: var(--good); }
        .warning { color: var(--warning); }
        .bad { color: var(--bad); }
        form { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: end; }
        form p { margin: 0; flex: 1 1 10rem; }
        form p:last-child { flex: 0 0 auto; }
        label { display: block; color: var(--quiet); }
        input, select, button { font: inherit; color: var(--text); background: var(--back); border: 1px solid var(--quiet);
          border-radius: 0.3rem; padding: 0.4rem 0.6rem; min-height: 2.5rem; }
        input, select { width: 100%; }
        button { cursor: pointer; padding: 0.4rem 1.2rem; }
        button[hidden] { display: none; }
        @media (max-width: 44rem) {
          main { grid-template-columns: minmax(0, 1fr); padding: 0.5rem; }
          #link { margin-left: 0; }
          table, tbody, tr { display: block; }
          thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
          caption { display: block; }
          tbody tr { border-bottom: 1px solid var(--line); padding: 0.35rem 0; }
          tbody tr:last-child { border-bottom: none; }
          tbody th, td { display: flex; justify-content: space-between; gap: 1rem; padding: 0.1rem 0; border: none; }
          td, .number { text-align: right; padding-right: 0; }
          td:empty { display: none; }
          td::before { content: attr(data-label); color: var(--quiet); text-align: left; flex: 0 0 auto; max-width: 55%; }
        }

        """

    static let icon = """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#0b57b7" \
        d="M8 1a1.3 1.3 0 0 0-1.3 1.3v.4A4.3 4.3 0 0 0 3.7 7v3L2 12.2v.8h12v-.8L12.3 10V7a4.3 4.3 0 0 0-3-4.3v-.4A1.3 1.3 \
        0 0 0 8 1zM6.2 14a1.9 1.9 0 0 0 3.6 0z"/></svg>

        """
}
