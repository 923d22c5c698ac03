/** Starts the pages. */

import { render } from "preact";
import { Notice } from "./parts/controls.tsx";
import { Shell, shellKeys } from "./parts/shell.tsx";
import { ComparePage } from "./pages/compare.tsx";
import { FilmPage } from "./pages/film.tsx";
import { ResultPage } from "./pages/result.tsx";
import { RunsPage } from "./pages/runs.tsx";
import { isWriting } from "./state/keys.ts";
import { failure, loaded, roots, runs, start } from "./state/library.ts";
import { place } from "./state/place.ts";
import "./style.css";

const PAGES = { runs: RunsPage, compare: ComparePage, film: FilmPage, result: ResultPage };

function App() {
  const { page } = place.value;
  const Page = PAGES[page];
  document.title = `${page[0]!.toUpperCase()}${page.slice(1)} · theseus-track`;
  return <Shell>{content(<Page />)}</Shell>;
}

function content(page: preact.JSX.Element) {
  if (!loaded.value) return <Notice title="Reading the runs …" />;
  if (runs.value.length) return page;
  if (failure.value) return <Notice bad title="No answer"><p>{failure.value}</p></Notice>;
  return (
    <Notice title="No runs yet">
      <p>There is nothing in <strong>{roots.value.join(", ")}</strong>. Train the demo, then look again:</p>
      <pre tabIndex={0}>theseus-track demo{"\n"}theseus-track dashboard</pre>
      <p>This page shows the first run as soon as it is there.</p>
    </Notice>
  );
}

addEventListener("keydown", (event) => {
  if (!isWriting(event) && shellKeys(event)) event.preventDefault();
});

start();
render(<App />, document.getElementById("app")!);
