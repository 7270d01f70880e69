import { describe, expect, it } from '@jest/globals';
import { parseBody } from '../../../test/support/body-problems.js';
import { SettingsDto } from '../../../src/settings/flat/settings.dto.js';
import { emptySettingsRow, settingsChanges, shownSettings } from './settings-row.js';

describe('settingsChanges', () => {
  it.each([
    ['{}', []],
    ['{"unknown":1,"mcp_config":{},"secrets_store":{}}', []],
    [
      '{"language":"","max_iterations":null,"enable_sound_notifications":true}',
      [
        ['language', ''],
        ['max_iterations', null],
        ['enable_sound_notifications', true],
      ],
    ],
    [
      '{"llm_model":null,"llm_base_url":null,"llm_api_key":null,"search_api_key":null,"sandbox_api_key":null,"user_consents_to_analytics":null}',
      [],
    ],
    [
      '{"llm_model":"","llm_base_url":" ","llm_api_key":"  ","search_api_key":"","sandbox_api_key":"\\t","user_consents_to_analytics":false}',
      [
        ['llm_model', null],
        ['llm_api_key', null],
        ['llm_base_url', null],
        ['user_consents_to_analytics', false],
        ['search_api_key', null],
        ['sandbox_api_key', null],
      ],
    ],
    [
      '{"llm_api_key":"**********","search_api_key":"**********","llm_model":"**********"}',
      [['llm_model', '**********']],
    ],
    ['{"llm_api_key":" k\\n"}', [['llm_api_key', 'k']]],
    ['{"search_api_key":"","language":"de","provider_tokens_set":{"github":null}}', [['language', 'de']]],
    ['{"search_api_key":" ","provider_tokens_set":5}', []],
    ['{"search_api_key":"s","provider_tokens_set":{}}', [['search_api_key', 's']]],
    ['{"llm_api_key":"","provider_tokens_set":{}}', [['llm_api_key', null]]],
  ])('of %s', async (body, expected) => {
    const dto = await parseBody(SettingsDto, body);
    expect(dto instanceof SettingsDto && [...settingsChanges(dto)]).toEqual(expected);
  });
});

describe('shownSettings', () => {
  it('shows what is stored instead, also what is false, zero or blank', () => {
    const stored = { enable_default_condenser: false, max_budget_per_task: 0, language: '' };

    expect(shownSettings({ ...emptySettingsRow(), ...stored, llm_api_key_set: true })).toMatchObject({
      ...stored,
      llm_api_key: null,
      llm_api_key_set: true,
    });
  });
});
