/** What a bundler knows and TypeScript does not: style sheets are imported. */

declare module "*.css";
