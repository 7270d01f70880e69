import { isOwnServer } from '@slipway/common/model-endpoint.js';
import type { ClearMcpConfig } from './mcp/mcp-secrets.js';
import { namedServers } from './mcp/named-servers.js';
import { isSameModelServer } from './model-check.js';
import type { SettingsDocument } from './settings.schema.js';
import type { LayerOwner } from './settings-table.js';

/** A model as it is called; the key is in clear. */
export interface CalledModel {
  model: string | null;
  /** Null or blank: the provider's own address. */
  baseUrl: string | null;
  apiKey: string | null;
}

export const NO_MODEL: CalledModel = { model: null, baseUrl: null, apiKey: null };

/** A model, and whose key it has. */
interface KeyedModel {
  owner: LayerOwner;
  llm: CalledModel;
}

/** What one owner has set. */
export interface SettingsLayer<Members extends object = SettingsDocument> extends KeyedModel {
  /** Those that are null or absent are those of the layer below. */
  members: Members;
  toolServers: ClearMcpConfig | null;
}

/**
 * One layer over another, member by member. Model, address and key are one member, see {@link llmOver}; of tool servers,
 * those of the upper layer take their names.
 */
export function layered<Members extends object>(
  own: SettingsLayer<Members>,
  below: SettingsLayer,
): SettingsLayer<Members> {
  const completed = llmOver(own, below);
  return {
    owner: completed?.owner ?? own.owner,
    llm: completed?.llm ?? own.llm,
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
  { owner, llm: own }: KeyedModel,
  { owner: ownerBelow, llm: below }: KeyedModel,
): KeyedModel | null {
  const isElsewhere =
    (isUnset(below.model) && below.baseUrl === null) ||
    !isUnset(own.baseUrl) ||
    (!isUnset(own.model) && (!isUnset(own.apiKey) || !isServedBy(below, own.model ?? '')));
  return isElsewhere
    ? null
    : {
        owner: isUnset(own.apiKey) ? ownerBelow : owner,
        llm: {
          model: isUnset(own.model) ? below.model : own.model,
          baseUrl: below.baseUrl,
          apiKey: isUnset(own.apiKey) ? below.apiKey : own.apiKey,
        },
      };
}

function membersOver<Members extends object>(own: Members, below: object): Members {
  const given = Object.entries(own).filter(([, value]) => value !== null && value !== undefined);
  return { ...own, ...below, ...Object.fromEntries(given) };
}

/** Those of the upper layer, and those of the lower one whose names are free. */
export function toolServersOver(
  own: ClearMcpConfig | null,
  below: ClearMcpConfig | null,
): ClearMcpConfig | null {
  if (own === null || below === null) {
    return own ?? below;
  }
  const taken = namedServers(own);
  const isFree = ({ name }: { name?: unknown }): boolean => !taken.has(String(name));
  return {
    sseServers: [...own.sseServers, ...below.sseServers.filter(({ details = {} }) => isFree(details))],
    stdioServers: [...own.stdioServers, ...below.stdioServers.filter(isFree)],
    shttpServers: [...own.shttpServers, ...below.shttpServers.filter(({ details = {} }) => isFree(details))],
  };
}

/** Whether a layer's key may go where a model is called that has neither an address nor a key. */
function isServedBy({ model, baseUrl }: CalledModel, name: string): boolean {
  return baseUrl === null
    ? isSameModelServer({ model, baseUrl }, { model: name, baseUrl })
    : !isOwnServer(name);
}

export function isUnset(text: string | null): boolean {
  return text === null || text.trim() === '';
}
