import type { z } from 'zod';
import type { switchLlmSchema } from '@slipway/agent-protocol/conversation-schemas.js';
import { isJsonObject, type JsonObject, mergePatch } from '@slipway/common/json-access.js';
import { MASK } from '@slipway/common/secret-mask.js';
import { redactAgent } from '../secret-masker.js';
import { existing, HttpError } from '../http/http-error.js';
import type { SessionKeys } from '../http/session-keys.js';

const SECRET_PATH = /\/api\/settings\/secrets\/([A-Za-z][A-Za-z0-9_]{0,63})$/;
const MAX_SETTINGS_BYTES = 512 * 1024;
const MAX_SECRETS = 200;

type SettingsPart = 'agent_settings' | 'conversation_settings' | 'misc_settings';

/** Settings and named secrets that clients keep here for each other, in memory only; no conversation gets them. */
export class ClientSettings {
  readonly #secrets = new Map<string, { value: string; description: string | null }>();
  #parts: Record<SettingsPart, JsonObject> = {
    agent_settings: { agent_kind: 'openhands', mcp_config: {} },
    conversation_settings: {},
    misc_settings: {},
  };

  show(withSecrets: boolean): JsonObject {
    const { agent_settings, conversation_settings, misc_settings } = this.#parts;
    const agent = withoutEmptyModel(agent_settings);
    const llm = agent['llm'];
    return {
      agent_settings: withSecrets ? agent : redactAgent(agent),
      conversation_settings,
      llm_api_key_is_set: isJsonObject(llm) && typeof llm['api_key'] === 'string' && llm['api_key'] !== '',
      active_profile: null,
      active_agent_profile_id: null,
      active_meta_profile: null,
      misc_settings,
    };
  }

  /** Merges changes: null removes a nested member, and a mask keeps the stored value. @throws HttpError 413 */
  update(changes: Partial<Record<SettingsPart, JsonObject>>): void {
    const { agent_settings: agent, conversation_settings: conversation, misc_settings: misc } = this.#parts;
    const next = {
      agent_settings: mergePatch(agent, changes.agent_settings ?? {}, MASK),
      conversation_settings: mergePatch(conversation, changes.conversation_settings ?? {}, MASK),
      misc_settings: mergePatch(misc, changes.misc_settings ?? {}, MASK),
    };
    if (JSON.stringify(next).length > MAX_SETTINGS_BYTES) {
      throw new HttpError(413, `The settings may have at most ${MAX_SETTINGS_BYTES / 1024} KiB.`);
    }
    this.#parts = next;
  }

  secrets(): { name: string; description: string | null }[] {
    return [...this.#secrets].map(([name, { description }]) => ({ name, description }));
  }

  secret(name: string): string | null {
    return this.#secrets.get(name)?.value ?? null;
  }

  /**
   * The value of a secret whose lookup names this server; null when it leads elsewhere. Clients prove with the key
   * which server they mean, because they may use an address that this server cannot reach.
   */
  lookedUp(url: string, headers: Record<string, string>, keys: SessionKeys): string | null {
    const [, name] = SECRET_PATH.exec(new URL(url).pathname) ?? [];
    const key = Object.entries(headers).find(([header]) => header.toLowerCase() === 'x-session-api-key')?.[1];
    return name !== undefined && key !== undefined && !keys.isOpen && keys.accepts(key)
      ? this.secret(name)
      : null;
  }

  /** @throws HttpError 409 when there are too many */
  setSecret(name: string, value: string, description: string | null): void {
    if (!this.#secrets.has(name) && this.#secrets.size >= MAX_SECRETS) {
      throw new HttpError(409, `There are ${MAX_SECRETS} secrets, the most allowed: delete one first.`);
    }
    this.#secrets.set(name, { value, description });
  }

  deleteSecret(name: string): boolean {
    return this.#secrets.delete(name);
  }
}

/** The SDK refuses a model without members, and uses its own default where there is none. */
function withoutEmptyModel({ llm, ...agent }: JsonObject): JsonObject {
  return isJsonObject(llm) && Object.keys(llm).length > 0 ? { llm, ...agent } : agent;
}

export type ProfileModel = z.infer<typeof switchLlmSchema>['llm'];

const MAX_PROFILES = 100;

/** Named models that a conversation can switch to, in memory only. */
export class LlmProfiles {
  readonly byName = new Map<string, ProfileModel>();

  /** @throws HttpError 404 */
  get(name: string): ProfileModel {
    return existing(this.byName.get(name), `Profile '${name}' not found`);
  }

  /** @throws HttpError 409 when there are too many */
  save(name: string, profile: ProfileModel): void {
    if (!this.byName.has(name) && this.byName.size >= MAX_PROFILES) {
      throw new HttpError(409, `There are ${MAX_PROFILES} profiles, the most allowed: delete one first.`);
    }
    this.byName.set(name, profile);
  }
}
