import { expect, it } from '@jest/globals';
import type { ConfirmationPolicy, SecurityAnalyzer } from '@slipway/agent-protocol/conversation-api.js';
import { startSchema } from '@slipway/agent-protocol/conversation-schemas.js';
import { startRequest } from '../../test/support/agent-server-client.js';
import { newRecord } from './conversation-record.js';
import { credentialsOf, mergeCredentials, NO_CREDENTIALS } from './credentials.js';
import { toConfirmationPolicy, toEngineSettings } from './engine-settings.js';

const risky = (
  threshold: 'LOW' | 'HIGH' | 'UNKNOWN' = 'HIGH',
  confirm_unknown = true,
): ConfirmationPolicy => ({
  kind: 'ConfirmRisky',
  threshold,
  confirm_unknown,
});
const LLM = { kind: 'LLMSecurityAnalyzer' } as const;
const RAILS = { kind: 'PolicyRailSecurityAnalyzer' } as const;

it.each<[ConfirmationPolicy, SecurityAnalyzer | null, ReturnType<typeof toConfirmationPolicy>]>([
  [{ kind: 'NeverConfirm' }, null, { confirmationPolicy: 'never' }],
  [{ kind: 'NeverConfirm' }, LLM, { confirmationPolicy: 'never' }],
  [{ kind: 'AlwaysConfirm' }, null, { confirmationPolicy: 'always' }],
  [
    risky(),
    LLM,
    { confirmationPolicy: 'risky', risk: { analyzer: LLM, threshold: 'HIGH', confirmUnknown: true } },
  ],
  [
    risky('LOW', false),
    RAILS,
    { confirmationPolicy: 'risky', risk: { analyzer: RAILS, threshold: 'LOW', confirmUnknown: false } },
  ],
  [risky('UNKNOWN'), LLM, { confirmationPolicy: 'always' }],
  [risky(), null, { confirmationPolicy: 'always' }],
  [risky('HIGH', false), null, { confirmationPolicy: 'never' }],
])('%j with analyzer %j', (confirmationPolicy, securityAnalyzer, expected) => {
  expect(toConfirmationPolicy({ confirmationPolicy, securityAnalyzer })).toEqual(expected);
});

it.each([
  ['the default', { kind: 'LLMSummarizingCondenser' }, null, 96_000],
  ['what the model takes', { kind: 'LLMSummarizingCondenser' }, 8_000, 8_000],
  ['what is asked for', { kind: 'LLMSummarizingCondenser', max_tokens: 5_000 }, 8_000, 5_000],
  ['nothing', null, 8_000, null],
])('condenses above %s', (_, condenser, max_input_tokens, expected) => {
  const llm = { model: 'openai/fake', max_input_tokens };
  const request = startSchema.parse(startRequest({ agent: { kind: 'Agent', llm, condenser } }));
  const settings = toEngineSettings(
    newRecord('c0ffee', '/', request),
    mergeCredentials(NO_CREDENTIALS, credentialsOf(request)),
    [],
  );
  expect(settings.condenserTokens).toBe(expected);
});
