import type { SecurityAnalyzer } from '@slipway/agent-protocol/conversation-api.js';
import type { SecurityRisk } from '@slipway/agent-protocol/events.js';
import { parseJson } from '@slipway/common/json-access.js';
import { policyRailRisk } from './policy-rails.js';
import { runInNewContext } from 'node:vm';

/** Characters of a call that are looked at; nothing is said of what has more. */
const MAX_CHARACTERS = 100_000;
const SEVERITY: Readonly<Record<SecurityRisk, number>> = { UNKNOWN: 0, LOW: 1, MEDIUM: 2, HIGH: 3 };

export interface RiskPolicy {
  analyzer: SecurityAnalyzer;
  threshold: 'LOW' | 'MEDIUM' | 'HIGH';
  confirmUnknown: boolean;
}

interface ConfirmationSettings {
  confirmationPolicy: 'never' | 'always' | 'risky';
  risk?: RiskPolicy;
}

const DEFAULT_RISK_POLICY: RiskPolicy = {
  analyzer: { kind: 'LLMSecurityAnalyzer' },
  threshold: 'HIGH',
  confirmUnknown: true,
};

export interface JudgedCall {
  name: string;
  arguments: string;
  thought: readonly string[];
  stated: SecurityRisk;
}

export function asksForRisk({
  confirmationPolicy,
  risk = DEFAULT_RISK_POLICY,
}: ConfirmationSettings): boolean {
  return confirmationPolicy === 'risky' && asksModel(risk.analyzer);
}

function asksModel(analyzer: SecurityAnalyzer): boolean {
  return analyzer.kind === 'EnsembleSecurityAnalyzer'
    ? analyzer.analyzers.some(asksModel)
    : analyzer.kind === 'LLMSecurityAnalyzer';
}

export function judgedRisk(
  { confirmationPolicy, risk = DEFAULT_RISK_POLICY }: ConfirmationSettings,
  call: JudgedCall,
): SecurityRisk {
  return confirmationPolicy === 'risky' ? riskOf(risk.analyzer, call) : call.stated;
}

export function mustConfirm(
  { confirmationPolicy, risk: policy = DEFAULT_RISK_POLICY }: ConfirmationSettings,
  needsConfirmation: boolean,
  risk: SecurityRisk,
): boolean {
  if (!needsConfirmation || confirmationPolicy === 'never') {
    return false;
  }
  return confirmationPolicy === 'always' || isRisky(policy, risk);
}

export function riskOf(analyzer: SecurityAnalyzer, call: JudgedCall): SecurityRisk {
  if (analyzer.kind === 'LLMSecurityAnalyzer') {
    return call.stated;
  }
  if (analyzer.kind === 'EnsembleSecurityAnalyzer') {
    const risks = analyzer.analyzers.map((one) => riskOf(one, call));
    return worst(risks, analyzer.propagate_unknown);
  }
  const texts: CallTexts = { executed: [...leavesOf(call.arguments), call.name], thought: call.thought };
  const length = [...texts.executed, ...texts.thought].reduce((sum, text) => sum + text.length, 0);
  if (length > MAX_CHARACTERS) {
    return 'UNKNOWN';
  }
  return analyzer.kind === 'PatternSecurityAnalyzer'
    ? patternRisk(analyzer, texts)
    : policyRailRisk(texts.executed);
}

function isRisky({ threshold, confirmUnknown }: RiskPolicy, risk: SecurityRisk): boolean {
  return risk === 'UNKNOWN' ? confirmUnknown : SEVERITY[risk] >= SEVERITY[threshold];
}

function worst(risks: readonly SecurityRisk[], propagateUnknown: boolean): SecurityRisk {
  return propagateUnknown && risks.includes('UNKNOWN')
    ? 'UNKNOWN'
    : (risks.toSorted((a, b) => SEVERITY[b] - SEVERITY[a])[0] ?? 'UNKNOWN');
}

/** Every text inside the arguments, so that words of two of them make no sentence together. */
function leavesOf(args: string): string[] {
  const leaves: string[] = [];
  const open: unknown[] = [parseJson(args) ?? args];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === 'string') {
      leaves.push(value);
    } else if (typeof value === 'object' && value !== null) {
      for (const member of Object.values(value)) {
        open.push(member);
      }
    }
  }
  return leaves;
}

type PatternRule = readonly [pattern: string, description: string, id: string];

/** Lists from a client; the ones below apply if there are none. */
type PatternLists = {
  [Name in `${'' | 'injection_'}${'high' | 'medium'}_patterns`]?: readonly PatternRule[] | undefined;
};

/** Stops clients' patterns, which may run forever on the right text. */
const TIMEOUT_MS = 250;
const RM_FORCED =
  /\brm\s+(?:-[a-z]*r[a-z]*f|-[a-z]*f[a-z]*r|-r\s+-f|-f\s+-r|--recursive\s+--force|--force\s+--recursive)/;

/** Tried on what would be executed. */
const HIGH = [
  RM_FORCED.source,
  String.raw`\bsudo\s+rm\b`,
  String.raw`\bmkfs\.\w+`,
  String.raw`\bdd\b.{0,100}of=/dev/`,
  String.raw`\beval\s*\(`,
  String.raw`\bexec\s*\(`,
  String.raw`\bos\.system\s*\(`,
  String.raw`\bsubprocess\.(?:call|run|Popen|check_output|check_call)\s*\(`,
  String.raw`\bcurl\b[^|]{0,200}\|\s*(?:ba)?sh\b`,
  String.raw`\bwget\b[^|]{0,200}\|\s*(?:ba)?sh\b`,
];
const MEDIUM = [String.raw`\bcurl\b.{0,100}https?://`, String.raw`\bwget\b.{0,100}https?://`];
/** Tried on what the model thinks, too. */
const INJECTION_HIGH = [
  String.raw`\b(?:ignore|disregard|forget|override|bypass)\s+(?:all\s+)?(?:the\s+)?(?:previous|prior|above)\s+(?:instructions?|prompts?|rules?|directives?)\b`,
];
const INJECTION_MEDIUM = [
  String.raw`\byou\s+are\s+now\s+(?:in\s+)?(?:\w+\s+)?mode\b`,
  String.raw`\bpretend\s+(?:you\s+are|to\s+be)\s+(?:a\s+)?different\b`,
];

/** Finds the first list of patterns that one of the texts beside it has; -1: none. */
const SEARCH =
  'lists.findIndex(({ patterns, text }) => patterns.some((pattern) => new RegExp(pattern, "i").test(text)))';
// These characters are invisible, but split a word for a pattern.
const INVISIBLE =
  /[\p{Cf}\p{Variation_Selector}\u{34f}\u{115f}\u{1160}\u{2800}\u{3164}\u{ffa0}]|(?![\t\n\v\f\r])\p{Cc}/gu;

interface CallTexts {
  executed: readonly string[];
  thought: readonly string[];
}

/** The risk of a call by signatures. UNKNOWN: the patterns take too long, or rails cannot tell what is deleted. */
export function patternRisk(given: PatternLists, { executed, thought }: CallTexts): SecurityRisk {
  const [run, all] = [plain(executed), plain([...executed, ...thought])];
  const found = search([
    { patterns: patternsOf(given.high_patterns) ?? HIGH, text: run },
    { patterns: patternsOf(given.injection_high_patterns) ?? INJECTION_HIGH, text: all },
    { patterns: patternsOf(given.medium_patterns) ?? MEDIUM, text: run },
    { patterns: patternsOf(given.injection_medium_patterns) ?? INJECTION_MEDIUM, text: all },
  ]);
  const rails = policyRailRisk(executed);
  if (found === 'HIGH' || rails === 'HIGH') {
    return 'HIGH';
  }
  return found === 'LOW' ? rails : found;
}

function patternsOf(rules: readonly PatternRule[] | undefined): string[] | undefined {
  return rules?.map(([pattern]) => pattern);
}

function search(lists: readonly { patterns: string[]; text: string }[]): SecurityRisk {
  try {
    const index: unknown = runInNewContext(SEARCH, { lists }, { timeout: TIMEOUT_MS });
    return index === -1 ? 'LOW' : Number(index) < 2 ? 'HIGH' : 'MEDIUM';
  } catch {
    return 'UNKNOWN';
  }
}

/** The text as it would be read: without invisible characters, and with plain ones for those that look alike. */
function plain(texts: readonly string[]): string {
  return texts
    .join(' ')
    .replaceAll('\0', '')
    .replaceAll(INVISIBLE, '')
    .normalize('NFKC')
    .replaceAll(/\s+/g, ' ');
}
