// Start here: credentials from the URL, one gateway connection, one chat view.
import { render } from "preact";
import { ChatView } from "./chat_view";
import { takeCredentials } from "./credentials";
import "./style.css";

const root = document.getElementById("app");
if (root) render(<ChatView credentials={takeCredentials(window.location, window.sessionStorage)} />, root);
