import type { SecurityAnalyzer } from '@slipway/agent-protocol/conversation-api.js';
import type { SecurityRisk } from '@slipway/agent-protocol/events.js';
import { parseJson } from '@slipway/common/json-access.js';
import { type CallTexts, patternRisk } from './pattern-rules.js';
import { policyRailRisk } from './policy-rails.js';

/** Characters of a call that are looked at; nothing is said of what has more. */
const MAX_CHARACTERS = 100_000;
const SEVERITY: Readonly<Record<SecurityRisk, number>> = { UNKNOWN: 0, LOW: 1, MEDIUM: 2, HIGH: 3 };

export interface RiskPolicy {
  analyzer: SecurityAnalyzer;
  /** Calls of this risk and above are confirmed. */
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
    return worst(
      analyzer.analyzers.map((one) => riskOf(one, call)),
      analyzer.propagate_unknown,
    );
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
