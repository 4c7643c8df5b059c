/** Topics of "learn" that take a model, and those that take tokens. */
export const LEARN_MODEL: ReadonlySet<string> = new Set(["activations", "flash", "pipeline"]);
export const LEARN_TOKENS: ReadonlySet<string> = new Set(["activations", "flash", "mechanisms", "pipeline"]);
