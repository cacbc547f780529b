// SPDX-License-Identifier: Apache-2.0
/// The style of the operator's pages: light and dark, one column on a phone. Contrasts meet WCAG 2.2 AA. Sizes are 12,
/// 14, 16 and 28 pixels, spaces multiples of 4.
enum PageStyle {
    static let css =
        colours + """
            * { box-sizing: border-box; }
            html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
            body { margin: 0; background: var(--back); color: var(--text); font: 0.875rem/1.5 system-ui, sans-serif; }
            header, main, nav, footer { max-width: 76rem; margin: 0 auto; padding: 0 1.5rem; }
            header { display: flex; align-items: center; gap: 0.5rem 0.75rem; padding-top: 1.25rem; }
            header p { margin: 0; }
            header img { display: block; }
            h1, h2, h3, h4 { margin: 0; font-weight: 600; font-size: 0.875rem; }
            h1 { font-size: 1rem; }
            #why { flex: 1 1 0; min-width: 0; overflow-wrap: anywhere; }
            #why:empty { flex: 0; }
            #place { margin-left: auto; }
            #place, #link { white-space: nowrap; }
            body > nav { padding-top: 0.75rem; padding-bottom: 0.75rem; }
            nav ul { display: flex; flex-wrap: wrap; gap: 0 1.25rem; margin: 0; padding: 0; list-style: none; }
            nav a { display: inline-block; padding: 0.25rem 0; color: var(--quiet); text-decoration: none; }
            nav a:hover { color: var(--text); text-decoration: underline; }
            footer { padding-top: 1.5rem; padding-bottom: 2rem; }
            footer nav { padding: 0; }
            a { color: var(--link); text-underline-offset: 0.15em; }
            .skip { position: absolute; left: -100rem; background: var(--card); padding: 0.5rem 1rem; z-index: 1; }
            .skip:focus { left: 0; top: 0; }
            .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
            :focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 0.25rem; }
            main { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem; align-items: start; }
            main:focus { outline: none; }
            section { background: var(--card); border: 1px solid var(--line); border-radius: 0.5rem; padding: 1rem 1.25rem;
              min-width: 0; }
            .wide, noscript { grid-column: 1 / -1; }
            .head { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 0.75rem; margin-bottom: 0.75rem; }
            .note, caption, .quiet, .unit, .axis, .most, thead th, label { color: var(--quiet); }
            p { margin: 0; }
            main p + p, table + p { margin-top: 0.5rem; }
            .facts + table { margin-top: 1rem; }
            .facts + p { margin-top: 0.5rem; }
            .most, .axis, .unit, thead th, caption, label { font-size: 0.75rem; }
            ul { padding-left: 1.1rem; margin: 0; }
            li { overflow-wrap: anywhere; }
            b { font-weight: 600; font-variant-numeric: tabular-nums; }
            code { font: 0.8125rem/1.5 ui-monospace, monospace; }
            .facts { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; padding: 0; list-style: none; }
            .cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 0.75rem; }
            .cards + * { margin-top: 0.75rem; }
            .card { border-left: 3px solid currentColor; border-radius: 0.25rem; padding: 0.75rem 1rem; background: var(--tint);
              overflow-wrap: anywhere; }
            .card p { color: var(--text); }
            .card h3 { margin-bottom: 0.25rem; }
            .card p::first-letter, #why::first-letter { text-transform: uppercase; }
            .tiles { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 1rem 2rem; }
            .tiles + .facts { margin-top: 1rem; }
            .two { grid-template-columns: repeat(2, minmax(0, 1fr)); }
            .tile { display: grid; grid-template-columns: 1fr auto; align-items: baseline; min-width: 0; }
            .tile > * { grid-column: 1 / -1; }
            .tile > .figure { grid-column: 1; }
            .tile > .most { grid-column: 2; margin: 0; }
            .tile h3 { color: var(--quiet); font-weight: normal; }
            .figure { font-size: 1.75rem; line-height: 1.3; font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
            .unit { font-weight: normal; }
            .graph, .bars { display: block; width: 100%; height: 4rem; margin-top: 0.25rem; border-bottom: 1px solid var(--axis); }
            .graph polyline { fill: none; stroke: var(--graph); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
            .graph polygon { fill: var(--area); }
            .grid { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }
            .axis { display: flex; justify-content: space-between; margin: 0.125rem 0 0; }
            .shares { display: block; width: 100%; height: 0.5rem; border-radius: 0.25rem; margin-bottom: 0.5rem; }
            .shares + .facts { margin-bottom: 0.75rem; }
            .key { display: inline-block; width: 0.625rem; height: 0.625rem; border-radius: 2px; margin-right: 0.25rem; }
            .accepted { fill: var(--graph); background: var(--graph); }
            .online { fill: var(--online); background: var(--online); }
            .suppressed { fill: var(--axis); background: var(--axis); }
            .parked { fill: var(--parked); background: var(--parked); }
            .expired { fill: var(--warning); background: var(--warning); }
            .rejected { fill: var(--bad); background: var(--bad); }
            table { border-collapse: collapse; width: 100%; }
            caption { text-align: left; padding: 0 0 0.25rem; }
            th, td { text-align: left; vertical-align: top; padding: 0.375rem 1rem 0.375rem 0; border-bottom: 1px solid var(--line);
              overflow-wrap: anywhere; }
            th:last-child, td:last-child { padding-right: 0; }
            thead th { font-weight: normal; overflow-wrap: normal; white-space: nowrap; }
            tbody th { font-weight: 500; }
            tbody tr:last-child > * { border-bottom: none; padding-bottom: 0; }
            .number { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
            .number + :not(.number) { padding-left: 1rem; }
            .state { font-weight: 500; }
            .good { color: var(--good); --tint: var(--good-tint); }
            .warning { color: var(--warning); --tint: var(--warning-tint); }
            .bad { color: var(--bad); --tint: var(--bad-tint); }
            .pill { display: inline-block; background: var(--tint, var(--line)); border-radius: 1rem; padding: 0 0.75rem;
              line-height: 1.5rem; font-weight: 600; white-space: nowrap; }
            .verdict { font-size: 1rem; font-weight: 600; overflow-wrap: anywhere; }
            .answer + .answer { margin-top: 1.25rem; padding-top: 1.25rem; border-top: 1px solid var(--line); }
            details { margin-top: 0.75rem; }
            summary { cursor: pointer; color: var(--link); width: fit-content; }
            details[open] > summary { margin-bottom: 0.5rem; }
            details h3 { margin: 0.75rem 0 0.25rem; overflow-wrap: anywhere; }
            form { display: flex; flex-wrap: wrap; gap: 0.75rem 1rem; align-items: end; }
            form p { margin: 0; flex: 1 1 10rem; }
            form p:last-child { flex: 0 0 auto; }
            form + p { margin-top: 0.75rem; }
            label { display: block; margin-bottom: 0.125rem; }
            input, select, button { font: inherit; color: var(--text); background: var(--card); border: 1px solid var(--axis);
              border-radius: 0.375rem; padding: 0.25rem 0.75rem; min-height: 2.25rem; }
            input, select { width: 100%; }
            button { cursor: pointer; }
            button:hover { background: var(--back); }
            form button { background: var(--link); border-color: var(--link); color: var(--card); font-weight: 600; padding: 0.25rem 1.25rem; }
            form button:hover { background: var(--text); border-color: var(--text); }
            button[hidden] { display: none; }
            .prose h2 { font-size: 1rem; margin-top: 2rem; }
            .prose h2:first-child { margin-top: 0; }
            .prose h3 { margin: 1.5rem 0 0.5rem; }
            .prose li { margin: 0.25rem 0; }
            .prose p { margin: 0.5rem 0; max-width: 46rem; }
            .prose ul { max-width: 46rem; }
            .prose p code, .prose li code, .prose td a { white-space: nowrap; }
            .prose pre { overflow-x: auto; }
            :target { scroll-margin-top: 1rem; }
            .prose :target { background: var(--warning-tint); border-radius: 0.25rem; padding: 0.25rem 0.5rem; margin-left: -0.5rem; }

            """ + phone

    private static let colours = """
        :root {
          color-scheme: light dark;
          --back: #f5f6f8; --card: #ffffff; --line: #e4e7ec; --axis: #aab2bd; --text: #1a1d21; --quiet: #58616d;
          --link: #1153b8; --graph: #2f6fd0; --area: #e1ebfa; --online: #63a1b8; --parked: #c9a227;
          --good: #14652f; --good-tint: #e5f4ea; --warning: #7a4a00; --warning-tint: #fdf3dc;
          --bad: #a3131d; --bad-tint: #fdeaea;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --back: #0f1215; --card: #171b20; --line: #282e35; --axis: #535d68; --text: #e7eaed; --quiet: #9ea8b3;
            --link: #8bb6ff; --graph: #6b9ff0; --area: #1c2f4d; --online: #5b93a8; --parked: #a8862a;
            --good: #68cf88; --good-tint: #12281a; --warning: #efb64f; --warning-tint: #2c210d;
            --bad: #ff9891; --bad-tint: #321718;
          }
        }

        """

    private static let phone = """
        @media (max-width: 64rem) {
          header { flex-wrap: wrap; }
          #why { order: 1; flex: 1 1 100%; }
          .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); }
        }
        @media (max-width: 48rem) {
          header, main, nav, footer { padding-left: 0.75rem; padding-right: 0.75rem; }
          header { display: grid; grid-template-columns: auto 1fr auto; padding-top: 0.75rem; }
          header p { grid-column: 1 / -1; }
          header #state { grid-column: 3; grid-row: 1; }
          #why:empty { display: none; }
          header #place, header #link { margin: 0; grid-column: 1 / 3; white-space: normal; overflow-wrap: anywhere; }
          #pause { grid-column: 3; grid-row: 3 / 5; }
          nav ul { gap: 0 1rem; }
          main { grid-template-columns: minmax(0, 1fr); gap: 0.75rem; }
          section { padding: 0.75rem 1rem; }
          .tiles { gap: 1rem; }
          .two { grid-template-columns: minmax(0, 1fr); }
          #why { order: 0; }
          .tile > .most { display: none; }
          .figure { font-size: 1.25rem; }
          .graph { height: 2.5rem; }
          .axis span:not(:first-child):not(:last-child) { display: none; }
          form p, form p:last-child { flex: 1 1 100%; }
          form button { width: 100%; }
          table, tbody, tr, caption { display: block; }
          thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
          tbody tr { border-bottom: 1px solid var(--line); padding: 0.5rem 0; }
          tbody tr:last-child { border-bottom: none; padding-bottom: 0; }
          tbody tr { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 1.5rem; }
          tbody th { display: block; grid-column: 1 / -1; padding: 0; border: none; }
          td { display: flex; justify-content: space-between; gap: 0.5rem; padding: 0; border: none; text-align: right; }
          .number + :not(.number) { padding-left: 0; }
          td:not(.number) { grid-column: 1 / -1; }
          td:empty { display: none; }
          .prose p code, .prose li code, .prose td a { white-space: normal; }
          td::before { content: attr(data-label); color: var(--quiet); text-align: left; flex: 0 0 auto; max-width: 55%; }
        }

        """

    static let icon = """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#2f6fd0" \
        d="M8 1a1.3 1.3 0 0 0-1.3 1.3v.4A4.3 4.3 0 0 0 3.7 7v3L2 12.2v.8h12v-.8L12.3 10V7a4.3 4.3 0 0 0-3-4.3v-.4A1.3 1.3 \
        0 0 0 8 1zM6.2 14a1.9 1.9 0 0 0 3.6 0z"/></svg>

        """
}
