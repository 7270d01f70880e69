import type { SettingsDto } from './dto/settings.dto.js';
import { SETTINGS_COLUMNS, type SettingsColumn } from './settings-columns.js';

/** New values by column, keys still in clear; a column that is not here keeps its value. */
export type SettingsChanges = ReadonlyMap<SettingsColumn, string | number | boolean | null>;

/** Clients send null for these when they mean "unchanged" (their forms never get the keys to show). */
const NULL_KEEPS: readonly SettingsColumn[] = [
  'llm_model',
  'llm_base_url',
  'llm_api_key',
  'search_api_key',
  'sandbox_api_key',
  'user_consents_to_analytics',
];

/** Since null keeps these, blank text clears them. */
const BLANK_CLEARS: readonly SettingsColumn[] = [
  'llm_model',
  'llm_base_url',
  'llm_api_key',
  'search_api_key',
  'sandbox_api_key',
];

/** Which columns a request changes, and to what. */
export function settingsChanges(dto: SettingsDto): SettingsChanges {
  return new Map(
    SETTINGS_COLUMNS.flatMap((column): [SettingsColumn, string | number | boolean | null][] => {
      const value = dto[column];
      if (value === undefined || (value === null && NULL_KEEPS.includes(column))) {
        return [];
      }
      const clears = typeof value === 'string' && value.trim() === '' && BLANK_CLEARS.includes(column);
      return [[column, clears ? null : value]];
    }),
  );
}
