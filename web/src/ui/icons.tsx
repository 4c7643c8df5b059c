/** Icons, drawn with the text's colour. */
import { kept } from "./kept";

const PATHS = {
  check: "M4.5 12.5l5 5 10-11",
  tight: "M4 10c3-3 5 2 8 0s5-3 8 0M4 16c3-3 5 2 8 0s5-3 8 0",
  cross: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h10v11H9zM5 15V4h10",
  link: "M10 14a4 4 0 006 .4l3-3a4 4 0 00-5.7-5.7l-1.6 1.6M14 10a4 4 0 00-6-.4l-3 3a4 4 0 005.7 5.7l1.6-1.6",
  sun: "M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v2.5M12 19.5V22M2 12h2.5M19.5 12H22M5 5l1.8 1.8M17.2 17.2L19 19M5 19l1.8-1.8M17.2 6.8L19 5",
  moon: "M20 14.5A8.5 8.5 0 119.5 4a7 7 0 0010.5 10.5z",
  auto: "M12 3a9 9 0 100 18zM12 3a9 9 0 010 18",
  close: "M6 6l12 12M18 6L6 18",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  terminal: "M4 6l6 6-6 6M12 18h8",
  down: "M6 9l6 6 6-6",
  plus: "M12 5v14M5 12h14",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4",
  search: "M11 4a7 7 0 100 14 7 7 0 000-14zM16 16l5 5",
  arrow: "M5 12h14M13 6l6 6-6 6",
  info: "M12 3a9 9 0 100 18 9 9 0 000-18zM12 11v6M12 7.5v.5",
  warn: "M12 4l9 16H3zM12 10v5M12 17.3v.4",
} as const;

export type IconName = keyof typeof PATHS;

/** One icon; decoration, so hidden from screen readers. */
export const Icon = kept(function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
});
