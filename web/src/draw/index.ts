export * from "./palette.ts";
export * from "./surface.tsx";
