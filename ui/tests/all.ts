// Every test of the page's pure parts: `npm test` bundles this file and runs it with Node.js.
import "./conversation.test";
import "./draft.test";
import "./history.test";
import "./markdown.test";
import "./outlook.test";
