// Builds the pages into the package, under names that do not change.
import { defineConfig } from "vite";

export default defineConfig({
  // Relative addresses: a proxy may put a path before everything.
  base: "./",
  build: {
    outDir: process.env.UI_OUT ?? "../theseus_track/dashboard/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: {
        entryFileNames: "app.js",
        assetFileNames: "app[extname]",
        codeSplitting: false,
      },
    },
  },
});
