// Before the first paint: the theme and the language that were chosen last, so that nothing flashes.
try {
  const theme = localStorage.getItem("kvgauge.theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be closed; the system's theme stands then.
}
