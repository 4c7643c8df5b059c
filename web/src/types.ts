/** The JSON of the API, as far as the page reads it. Fields may be added by the library at any time. */

export interface Term {
  group: string;
  from_tokens: number;
  to_tokens: number | null;
  step_tokens: number;
  rounding: "floor" | "ceil";
  bytes_per_step: number;
}

export interface ModelInfo {
  id: string;
  revision: string | null;
  source: string;
  model_type: string;
  architecture: string | null;
  num_layers: number;
  context_limit_tokens: number | null;
  overrides: Record<string, unknown>;
}

export interface RequestInfo {
  context_tokens: number;
  sequences: number;
  shared_prefix_tokens: number;
  k_dtype: string;
  v_dtype: string;
  state_dtype: string;
  engine: string;
  engine_version: string | null;
  tensor_parallel: number;
  pipeline_parallel: number;
  data_parallel: number;
  expert_parallel: number;
  context_parallel: number;
  defaulted: string[];
  gpu?: string | null;
  num_gpus?: number;
}

export type Grade = "exact" | "measured" | "assumed";

export interface Allocation {
  name: string;
  kind: string;
  rank: number;
  place: string;
  bytes: number;
  low_bytes: number;
  high_bytes: number;
  grade: Grade;
  because: string;
}

export interface Group {
  kind: string;
  name: string;
  num_layers: number;
  formula: string;
  bytes: number;
}

export interface Layer {
  index: number;
  kind: string;
  bytes: number;
  bytes_per_token: number;
  fixed_bytes: number;
  window_tokens: number | null;
  shares_cache_of: number | null;
}

export interface RankTerms {
  rank: number;
  fixed_bytes: number;
  terms: Term[];
}

export interface CacheAnswer {
  family: string;
  total_bytes: number;
  bytes_per_sequence: number;
  fixed_bytes_per_sequence: number;
  growth_bytes_per_token: number;
  theory_total_bytes?: number;
  terms: Term[];
  rank_terms?: RankTerms | null;
  per_rank_bytes: number[];
  layers?: Layer[];
  groups: Group[];
}

export interface WeightPart {
  part: string;
  num_parameters: number;
  dtype: string;
  bytes: number;
}

export interface WeightsAnswer {
  total_bytes: number;
  num_parameters: number;
  num_active_parameters: number;
  by_part: WeightPart[];
  per_rank_bytes: number[];
  grade: Grade;
  scheme?: string;
}

export interface Note {
  code: string;
  level: "info" | "warning";
  message: string;
}

export interface EngineAnswer {
  name: string;
  version: string | null;
  allocations?: Allocation[];
  details: Record<string, unknown>;
}

export interface SizeAnswer {
  schema: string;
  model: ModelInfo;
  request: RequestInfo;
  cache: CacheAnswer;
  weights: WeightsAnswer | null;
  engine: EngineAnswer | null;
  notes: Note[];
  comparison?: { ratio: number | null; rank: number | null };
}

export interface Device {
  rank: number;
  place: string;
  memory_bytes: number | null;
  allocations: Allocation[];
  free_bytes: number | null;
}

export interface Pool {
  bytes: number;
  num_blocks: number | null;
  block_size_tokens: number | null;
  bytes_per_block: number | null;
  blocks_per_request: number | null;
  bytes_per_request: number | null;
  capacity_tokens: number | null;
  max_concurrency: number | null;
  [name: string]: unknown;
}

export interface Verdict {
  status: "fits" | "tight" | "does_not_fit";
  fits: boolean;
  limiting: string;
  required_bytes: number;
  required_low_bytes: number;
  required_high_bytes: number;
  available_bytes: number;
  slack_bytes: number;
  sentence: string;
}

export interface Suggestion {
  code: string;
  fits?: boolean;
  effect: Record<string, number | string>;
  change?: Record<string, unknown>;
  message: string;
}

export interface FitAnswer {
  schema: string;
  model: ModelInfo;
  request: RequestInfo;
  verdict: Verdict;
  devices: Device[];
  kv_pool: Pool;
  max_context_tokens: number;
  max_sequences: number;
  limited_by: string;
  max_context_limited_by: string;
  max_sequences_limited_by: string;
  launch_command: string;
  suggestions: Suggestion[];
  engine: EngineAnswer;
  notes: Note[];
}

export interface ExplainStep {
  id: string;
  title: string;
  text: string;
  formula: string | null;
  with_numbers: string | null;
  symbols: Record<string, number>;
  symbol_meanings: Record<string, string>;
  symbol_paths: Record<string, string>;
  definitions: { symbol: string; formula: string; with_numbers: string; value: number }[];
  config_path: string | null;
  fields: { path: string; value: unknown }[];
  value_bytes: number | null;
  source: string;
}

export interface ExplainAnswer {
  schema: string;
  model: ModelInfo;
  steps: ExplainStep[];
}

export interface ErrorBody {
  code: string;
  message: string;
  hint: string | null;
  field: string | null;
}

export interface ErrorAnswer {
  schema: string;
  error: ErrorBody;
}

export interface CompareAnswer {
  schema: string;
  rows: (SizeAnswer | ErrorAnswer)[];
}

export interface SearchAnswer {
  models: { id: string; source: string }[];
  more: boolean;
  hub: string;
}

export interface GpuRow {
  id: string;
  name: string;
  vendor: string;
  kind: string;
  year: number | null;
  aliases: string[];
  label_bytes: number;
  memory: { central_bytes: number; grade: string } | null;
  prices?: unknown[];
}

export interface EngineRow {
  name: string;
  versions: string[];
  newest_version: string | null;
  summary: string;
}

export interface VerifyLine {
  quantity: string;
  unit: string;
  measured: number | null;
  predicted: number | null;
  predicted_low: number | null;
  predicted_high: number | null;
  error_fraction: number | null;
  verdict: string;
  because: string | null;
}

export interface VerifyAnswer {
  schema: string;
  engine: Record<string, unknown> & { name: string; version: string | null };
  lines: VerifyLine[];
  advice: unknown[];
  failures: unknown[];
  notes: Note[];
}

export interface PlanOption extends FitAnswer {
  gpu: string;
  num_gpus: number;
  parallelism: Record<string, number> | string;
  price_per_hour: number | null;
  price?: { date: string; grade: string; source: string } | null;
  num_nodes?: number;
  kv_dtype_changed?: string | null;
  weights_changed?: string | null;
  fit_arguments?: string[];
  rank_reason: string;
}

export interface PlanAnswer {
  schema: string;
  model?: ModelInfo;
  options: PlanOption[];
  decision_path: { code: string; question: string; answer: string; answer_code?: string; because: string }[];
  notes?: Note[];
}
