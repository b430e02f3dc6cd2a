import { defineConfig } from "vite";

// The gateway embeds dist/ (see crates/gateway/src/http/ui.rs). Relative URLs let it be served below any base path.
export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: { target: "es2022", modulePreload: false, reportCompressedSize: false },
});
