import { isOwnServer, modelEndpoint } from '@slipway/common/model-endpoint.js';
import type { CalledModel } from './settings-layers.js';

export const MODEL_USE_CODES = ['no_key', 'no_address', 'no_price'] as const;

/** A model that was stored although no conversation can begin with it, or each ends at once. */
export interface ModelUseWarning {
  code: (typeof MODEL_USE_CODES)[number];
  detail: string;
}

/** What is known of a model without asking its server, in sentences for the user. */
export function modelUseWarnings(
  { model, base_url, api_key }: CalledModel,
  { budget, isPriced }: { budget: number | null; isPriced: boolean },
): ModelUseWarning[] {
  const name = model?.trim() ?? '';
  if (name === '') {
    return [];
  }
  const endpoint = modelEndpoint(name, base_url);
  const lacksKey = (api_key ?? '') === '' && (base_url ?? '').trim() === '' && !isOwnServer(name);
  const unreached: ModelUseWarning[] =
    'problem' in endpoint
      ? [{ code: 'no_address', detail: `It was stored, but no conversation can begin: ${endpoint.problem}` }]
      : lacksKey
        ? [
            {
              code: 'no_key',
              detail: `No conversation can begin with ${name} before its key is stored (llm_api_key).`,
            },
          ]
        : [];
  return budget === null || isPriced
    ? unreached
    : [
        ...unreached,
        {
          code: 'no_price',
          detail: `The price of ${name} is not known, so the budget of a conversation (max_budget_per_task, ${budget} USD) is not enforced with it. Give the price: input_cost_per_token and output_cost_per_token of agent_settings.llm, or MODEL_PRICES_FILE by the operator.`,
        },
      ];
}
