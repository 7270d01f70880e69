import { describe, expect, it } from '@jest/globals';
import { parsedConfig } from './mcp/mcp-secrets.js';
import { type CalledModel, layered, NO_MODEL, type SettingsLayer } from './settings-layers.js';

const GATEWAY = 'https://gateway.example.com/v1';

function layer(
  owner: SettingsLayer['owner'],
  given: Partial<Omit<SettingsLayer, 'llm'>> & { llm?: Partial<CalledModel> } = {},
): SettingsLayer {
  return { owner, members: {}, toolServers: null, ...given, llm: { ...NO_MODEL, ...given.llm } };
}

describe('layered', () => {
  const below = { model: 'openai/below', api_key: 'key-below' };
  const gateway = { model: 'team/large', api_key: 'key-below', base_url: GATEWAY };

  it.each<[string, Partial<CalledModel>, Partial<CalledModel>, SettingsLayer['owner'], Partial<CalledModel>]>(
    [
      ['nothing', {}, below, 'operator', below],
      ['blanks', { model: ' ', api_key: '', base_url: '' }, below, 'operator', below],
      ['a key', { api_key: 'mine' }, below, 'user', { model: 'openai/below', api_key: 'mine' }],
      [
        'a model of the same provider',
        { model: 'openai/mine' },
        below,
        'operator',
        { ...below, model: 'openai/mine' },
      ],
      [
        'a model of another provider',
        { model: 'anthropic/mine' },
        below,
        'user',
        { model: 'anthropic/mine' },
      ],
      [
        'an address',
        { base_url: 'https://mine.example.com' },
        below,
        'user',
        { base_url: 'https://mine.example.com' },
      ],
      [
        'a model with its key',
        { model: 'openai/mine', api_key: 'mine' },
        gateway,
        'user',
        { model: 'openai/mine', api_key: 'mine' },
      ],
      [
        'a model that the gateway may have',
        { model: 'any/mine' },
        gateway,
        'operator',
        { ...gateway, model: 'any/mine' },
      ],
      ['a server of its own', { model: 'ollama/mine' }, gateway, 'user', { model: 'ollama/mine' }],
      ['nothing over nothing', {}, {}, 'user', {}],
    ],
  )('gives the key of the layer below to nobody but its own server: %s', (_, own, lower, owner, called) => {
    expect(layered(layer('user', { llm: own }), layer('operator', { llm: lower }))).toMatchObject({
      owner,
      llm: { ...NO_MODEL, ...called },
    });
  });

  it('takes each member from the uppermost layer that has set it, false and zero too', () => {
    const lowest = layer('operator', {
      members: { max_budget_per_task: 4, language: 'en', clone_depth: 50, enable_default_condenser: true },
    });
    const middle = layer('user', { members: { language: 'fr', max_budget_per_task: 2 } });
    const top = layer('user', { members: { max_budget_per_task: 0, enable_default_condenser: false } });

    expect(layered(layered(top, middle), lowest)).toEqual(layered(top, layered(middle, lowest)));
    expect(layered(layered(top, middle), lowest).members).toEqual({
      max_budget_per_task: 0,
      language: 'fr',
      clone_depth: 50,
      enable_default_condenser: false,
    });
  });

  it('adds tool servers whose names are free', () => {
    const servers = (...names: string[]): SettingsLayer['toolServers'] =>
      parsedConfig(
        JSON.stringify({
          sseServers: [],
          shttpServers: names.map((name) => ({
            url: `https://${name}.example.com`,
            apiKey: null,
            details: { name },
          })),
          stdioServers: [{ name: 'files', command: names.join('-'), args: [], env: [] }],
        }),
      );

    const { toolServers } = layered(
      layer('user', { toolServers: servers('mine', 'both') }),
      layer('operator', { toolServers: servers('both', 'files', 'given') }),
    );

    expect(toolServers?.stdioServers.map(({ command }) => command)).toEqual(['mine-both']);
    expect(toolServers?.shttpServers.map(({ details }) => details?.['name'])).toEqual([
      'mine',
      'both',
      'given',
    ]);
  });
});
