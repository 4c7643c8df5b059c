/** The page starts here. */
import "./styles/index.css";
import { render } from "preact";
import { load } from "./state/store";
import { App } from "./views/app";

load();
const place = document.getElementById("app");
if (place) render(<App />, place);
