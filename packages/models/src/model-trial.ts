import { errorMessage } from '@slipway/common/errors/error-message.js';
import type { GuardedHttpClient } from '@slipway/common/http/guarded-http.client.js';
import type { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { UpstreamError } from '@slipway/common/http/upstream-error.js';
import { type JsonObject, jsonText, parseJson } from '@slipway/common/json-access.js';
import { addressToCheck, modelEndpoint } from '@slipway/common/model-endpoint.js';
import { withoutSecret } from '@slipway/common/secret-mask.js';
import type { ModelFacts } from './model-catalogue.js';
import { type Question, readReply, type Reply, requestFor, type TriedModel } from './trial-requests.js';

export const TRIAL_NAMES = [
  'reachable',
  'streams',
  'tools_native',
  'tools_in_text',
  'several_calls',
  'images',
  'context',
  'price',
] as const;
export const TRIAL_RESULTS = ['ok', 'no', 'unknown'] as const;

export interface TrialCheck {
  name: (typeof TRIAL_NAMES)[number];
  result: (typeof TRIAL_RESULTS)[number];
  detail: string;
  /** Members of `llm` that suit the model. */
  setting?: JsonObject;
}

export const TRIAL_MS = 60_000;
const MAX_REASON = 300;

const GREETING: Question = { text: 'Answer with the word yes.' };
const NATIVE: Question = { text: 'Use the tool to add 2 and 3.', withTool: true };
const SEVERAL: Question = {
  text: 'Use the tool for both at once, in one answer: 2 and 3, and 4 and 5.',
  withTool: true,
};
const IN_TEXT: Question = {
  system:
    'You call the tool add, with the numbers a and b, by writing exactly this form and nothing behind it:\n<function=add>\n<parameter=a>1</parameter>\n<parameter=b>1</parameter>\n</function>',
  text: 'Call the tool to add 2 and 3.',
};
/** One red pixel. */
const IMAGE: Question = {
  text: 'Which colour is this? One word.',
  image: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==',
};

/** A reply, or why there is none. */
type Outcome = { reply: Reply } | { result: 'no' | 'unknown'; detail: string };

/** Asks a model whether it can do what an agent needs, in a minute and 10,000 tokens at most. */
export class ModelTrial {
  /** @param openAddresses which addresses are asked, for users who gave another one */
  constructor(
    private readonly http: Pick<GuardedHttpClient, 'fetch'>,
    private readonly addresses: Pick<OutboundAddresses, 'problem'>,
    private readonly openAddresses: string,
  ) {}

  async run(userId: string, tried: TriedModel, { price, contextWindow }: ModelFacts): Promise<TrialCheck[]> {
    const signal = AbortSignal.timeout(TRIAL_MS);
    const ask = async (question: Question): Promise<Outcome> => this.ask(userId, tried, question, signal);
    const greeted = await ask(GREETING);
    const isReachable = 'reply' in greeted;
    const skipped: Outcome = { result: 'unknown', detail: 'The model could not be reached.' };
    const [native, inText, several, image] = isReachable
      ? await Promise.all([ask(NATIVE), ask(IN_TEXT), ask(SEVERAL), ask(IMAGE)])
      : [skipped, skipped, skipped, skipped];
    const cost = isReachable ? greeted.reply.cost : null;
    const inTextCheck = judged('tools_in_text', inText, ({ text }) =>
      hasCall(text)
        ? [true, 'It writes calls of tools as it is told.']
        : [false, 'It does not keep to the form of calls in text.'],
    );
    // What can do neither is no better with its tools taken away.
    const mayWrite = inTextCheck.result !== 'no';
    return [
      judged('reachable', greeted, () => [true, 'It answers.']),
      judged('streams', isReachable ? greeted : skipped, ({ isStream }) =>
        isStream
          ? [true, 'It answers piece by piece.']
          : [false, 'It answers in one piece, which works as well.'],
      ),
      judged(
        'tools_native',
        native,
        ({ calls }) =>
          calls.includes('add')
            ? [true, 'It calls tools by itself.']
            : [false, `It made no call of a tool${mayWrite ? '; calls in text may work' : ''}.`],
        mayWrite ? { native_tool_calling: false } : undefined,
      ),
      inTextCheck,
      judged('several_calls', several, ({ calls }) =>
        calls.length > 1
          ? [true, 'It makes several calls at once.']
          : [false, 'It makes one call at a time, which is slower.'],
      ),
      judged('images', image, () => [true, 'It takes pictures.'], { disable_vision: true }),
      contextWindow === null
        ? {
            name: 'context',
            result: 'unknown',
            detail: 'Give max_input_tokens, or long conversations may be cut.',
          }
        : { name: 'context', result: 'ok', detail: `${contextWindow} tokens.` },
      cost !== null
        ? { name: 'price', result: 'ok', detail: 'The provider says what each answer costs.' }
        : price !== null
          ? {
              name: 'price',
              result: 'ok',
              detail: `${price.input} USD per million tokens in, ${price.output} out.`,
            }
          : {
              name: 'price',
              result: 'unknown',
              detail: 'Costs and budgets need input_cost_per_token and output_cost_per_token.',
            },
    ];
  }

  private async ask(
    userId: string,
    tried: TriedModel,
    question: Question,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const endpoint = modelEndpoint(tried.model, tried.base_url, tried.api);
    if ('problem' in endpoint) {
      return { result: 'no', detail: endpoint.problem };
    }
    const address = addressToCheck(tried.model, tried.base_url);
    const problem = address === null ? null : this.addresses.problem(address);
    if (problem !== null) {
      return { result: 'no', detail: problem };
    }
    if (endpoint.api === 'openai' && !URL.canParse(endpoint.baseUrl)) {
      return { result: 'no', detail: 'Its address is none.' };
    }
    const { url, headers, body } = requestFor(tried, endpoint, question);
    try {
      const response = await this.http.fetch(url, { method: 'POST', headers, body, holder: userId, signal });
      const text = await response.text();
      const reply = response.ok ? readReply(text) : null;
      if (reply !== null) {
        return { reply };
      }
      const said =
        jsonText(parseJson(text), 'error', 'message') ?? jsonText(parseJson(text), 'message') ?? '';
      const reason = withoutSecret(said, tried.api_key)
        .replaceAll(/\s+/g, ' ')
        .slice(0, MAX_REASON)
        .toWellFormed();
      const isFinal = response.ok || (response.status < 500 && response.status !== 429);
      return {
        result: isFinal ? 'no' : 'unknown',
        detail: `Its server answered ${response.status}${reason === '' ? '' : `: ${reason}`}`,
      };
    } catch (error) {
      if (!(error instanceof UpstreamError)) {
        throw error;
      }
      const detail =
        error.reason === 'refused'
          ? `It was not asked: ${this.openAddresses}.`
          : `It could not be asked: ${errorMessage(error.cause ?? error)}`;
      return { result: error.reason === 'network' ? 'no' : 'unknown', detail };
    }
  }
}

/** Two searches: one pattern for both looks through the rest of a long answer for each beginning of a call. */
function hasCall(text: string): boolean {
  const begun = text.indexOf('<function=add>');
  return begun >= 0 && text.includes('<parameter=a>', begun);
}

function judged(
  name: TrialCheck['name'],
  outcome: Outcome,
  judge: (reply: Reply) => [isOk: boolean, detail: string],
  setting?: JsonObject,
): TrialCheck {
  if ('reply' in outcome) {
    const [isOk, detail] = judge(outcome.reply);
    return { name, result: isOk ? 'ok' : 'no', detail, ...(!isOk && setting && { setting }) };
  }
  return { name, ...outcome, ...(outcome.result === 'no' && setting && { setting }) };
}
