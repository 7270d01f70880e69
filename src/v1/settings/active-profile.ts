import { isDeepStrictEqual } from 'node:util';
import { isJsonObject, type JsonObject, without } from '../../common/json-merge.js';
import type { ClearLlmProfile } from '../../settings/llm-profile.repository.js';
import type { SettingsDetails } from '../../settings/nested-settings.js';
import type { SettingsKeys, SettingsRow } from '../../settings/settings-table.js';

/** The settings' model with its key and all its parameters, in the form of a profile; members without a value are absent. */
export function settingsLlm(
  { llm_model: model, llm_base_url: baseUrl }: Pick<SettingsRow, 'llm_model' | 'llm_base_url'>,
  { llm_api_key: apiKey }: Pick<SettingsKeys, 'llm_api_key'>,
  { agent }: SettingsDetails,
): JsonObject {
  const { llm } = agent;
  return withoutBlanks({
    ...(isJsonObject(llm) && llm),
    model,
    base_url: baseUrl,
    api_key: apiKey,
  });
}

/** A configuration without members that have no value. */
export function withoutBlanks(config: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(config).filter(([, value]) => value !== null && value !== undefined && value !== ''),
  );
}

/**
 * The name of the profile that the settings follow. It is compared, not remembered: whoever changes the model in the
 * settings has left the profile, through whichever address.
 */
export function activeProfile(
  profiles: readonly ClearLlmProfile[],
  row: Pick<SettingsRow, 'llm_model' | 'llm_base_url'>,
  keys: Pick<SettingsKeys, 'llm_api_key'>,
  details: SettingsDetails,
): string | null {
  const marked = profiles.find(({ active }) => active);
  if (!marked) {
    return null;
  }
  const current = settingsLlm(row, keys, details);
  // A profile without a key is used with that of the settings.
  const compared = 'api_key' in marked.config ? current : without(current, ['api_key']);
  return isDeepStrictEqual({ ...marked.config }, { ...compared }) ? marked.name : null;
}
