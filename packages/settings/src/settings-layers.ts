import { type JsonObject, without } from '@slipway/common/json-access.js';
import { isOwnServer } from '@slipway/common/model-endpoint.js';
import { namedServers } from '@slipway/tool-servers/named-servers.js';
import type { ToolServer } from '@slipway/tool-servers/tool-servers.js';
import { isSameModelServer } from '@slipway/models/model-check.js';
import type { SettingsDocument } from './settings.schema.js';
import type { LayerOwner, SettingsKeys, SettingsRow } from './settings-row.js';

/** A model as it is called; the key is in clear. */
export interface CalledModel {
  model: string | null;
  /** Null or blank: the provider's own address. */
  base_url: string | null;
  api_key: string | null;
}

/** The model that settings name. */
export function llmOf(
  row: Partial<Pick<SettingsRow, 'llm_model' | 'llm_base_url'>> | null,
  keys: Pick<SettingsKeys, 'llm_api_key'>,
): CalledModel {
  return {
    model: row?.llm_model ?? null,
    base_url: row?.llm_base_url ?? null,
    api_key: keys.llm_api_key,
  };
}

export const NO_MODEL: CalledModel = { model: null, base_url: null, api_key: null };

/** A model, and whose key it has. */
export interface KeyedModel {
  owner: LayerOwner;
  llm: CalledModel;
  /** Beyond name, address and key; may hold secrets, so they go where the key goes. */
  parameters?: JsonObject | undefined;
}

/** Parameters by which a request can tell a gateway to pass it on elsewhere, with the key that it came with. */
const STEERING_PARAMETERS = ['extra_headers', 'litellm_extra_body'];

/** What one owner has set. */
export interface SettingsLayer<Members extends object = SettingsDocument> extends KeyedModel {
  /** Those that are null or absent are those of the layer below. */
  members: Members;
  toolServers: readonly ToolServer[] | null;
}

/**
 * One layer over another, member by member. Model, address and key are one member, see {@link llmOver}; of tool servers,
 * those of the upper layer take their names.
 */
export function layered<Members extends object>(
  own: SettingsLayer<Members>,
  below: SettingsLayer<object>,
): SettingsLayer<Members> {
  const completed = llmOver(own, below);
  return {
    owner: completed?.owner ?? own.owner,
    llm: completed?.llm ?? own.llm,
    parameters: completed ? completed.parameters : own.parameters,
    members: membersOver(own.members, below.members),
    toolServers: toolServersOver(own.toolServers, below.toolServers),
  };
}

/**
 * Completes a model, and says whose key that is; null where its owner has a server of their own. The key of the lower
 * layer goes nowhere but to its own address, or without one to the provider of its model: who names an address or another
 * provider gets none of it.
 */
export function llmOver(
  { owner, llm: own, parameters }: KeyedModel,
  { owner: ownerBelow, llm: below, parameters: parametersBelow }: KeyedModel,
): KeyedModel | null {
  const isElsewhere =
    (isUnset(below.model) && below.base_url === null) ||
    !isUnset(own.base_url) ||
    (!isUnset(own.model) && (!isUnset(own.api_key) || !isServedBy(below, own.model ?? '')));
  return isElsewhere
    ? null
    : {
        owner: isUnset(own.api_key) ? ownerBelow : owner,
        parameters: isUnset(own.api_key)
          ? { ...parametersBelow, ...without(parameters ?? {}, STEERING_PARAMETERS) }
          : parameters,
        llm: {
          model: isUnset(own.model) ? below.model : own.model,
          base_url: below.base_url,
          api_key: isUnset(own.api_key) ? below.api_key : own.api_key,
        },
      };
}

export function membersOver<Members extends object>(own: Members, below: object): Members {
  const given = Object.entries(own).filter(([, value]) => value !== null && value !== undefined);
  return { ...own, ...below, ...Object.fromEntries(given) };
}

/**
 * What of a model others may use. Without an address a model of an own server is called inside the sandbox, where a user's
 * program may listen.
 */
export function sharedModel({ llm, parameters, owner }: KeyedModel): KeyedModel {
  const base_url = isUnset(llm.base_url) ? null : llm.base_url;
  return base_url === null && isOwnServer(llm.model ?? '')
    ? { owner, llm: { ...llm, base_url, api_key: null } }
    : { owner, llm: { ...llm, base_url }, parameters };
}

/** Those of the upper layer, and those of the lower one whose names are free. */
export function toolServersOver(
  own: readonly ToolServer[] | null,
  below: readonly ToolServer[] | null,
): readonly ToolServer[] | null {
  if (own === null || below === null) {
    return own ?? below;
  }
  const taken = namedServers(own);
  return [...own, ...below.filter(({ name }) => name === null || !taken.has(name))];
}

/** Whether a layer's key may go where a model is called that has neither an address nor a key. */
function isServedBy({ model, base_url }: CalledModel, name: string): boolean {
  return base_url === null
    ? isSameModelServer({ model, base_url }, { model: name, base_url })
    : !isOwnServer(name);
}

export function isUnset(text: string | null): boolean {
  return text === null || text.trim() === '';
}
