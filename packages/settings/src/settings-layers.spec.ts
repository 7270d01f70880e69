import { describe, expect, it } from '@jest/globals';
import { commandServer, remoteServer } from '../../../test/support/sample-tool-servers.js';
import { type CalledModel, layered, NO_MODEL, type SettingsLayer, sharedModel } from './settings-layers.js';

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

  const ours = { model: 'openai/ours', api_key: 'key-ours' };
  const desk = { model: 'team/ours', api_key: 'key-ours', base_url: 'https://desk.example.com' };

  type Model = Partial<CalledModel>;
  it.each<[string, Model, Model, Model, SettingsLayer['owner'], Model]>([
    ['nothing over a model', {}, ours, below, 'organization', ours],
    ['nothing over nothing', {}, {}, below, 'operator', below],
    ['a key over nothing', { api_key: 'mine' }, {}, below, 'user', { ...below, api_key: 'mine' }],
    [
      'nothing over a key alone',
      {},
      { api_key: 'key-ours' },
      below,
      'organization',
      { ...below, ...ours, model: below.model },
    ],
    [
      'a model over a key alone',
      { model: 'openai/mine' },
      { api_key: 'key-ours' },
      below,
      'organization',
      { model: 'openai/mine', api_key: 'key-ours' },
    ],
    [
      'another provider',
      { model: 'anthropic/mine' },
      ours,
      { model: 'anthropic/below', api_key: 'key-below' },
      'user',
      { model: 'anthropic/mine' },
    ],
    [
      'an address of the organization without a key',
      {},
      { base_url: desk.base_url },
      gateway,
      'organization',
      { base_url: desk.base_url },
    ],
    [
      'a model over an address',
      { model: 'any/mine' },
      desk,
      gateway,
      'organization',
      { ...desk, model: 'any/mine' },
    ],
    ['the address of the operator', { base_url: GATEWAY }, desk, gateway, 'user', { base_url: GATEWAY }],
    ['a key over an address', { api_key: 'mine' }, desk, gateway, 'user', { ...desk, api_key: 'mine' }],
    ['a server of its own', { model: 'ollama/mine' }, desk, gateway, 'user', { model: 'ollama/mine' }],
  ])(
    'gives the key of each of two layers to nobody but its own server: %s',
    (_, own, middle, lower, owner, called) => {
      const shared = layered(layer('organization', { llm: middle }), layer('operator', { llm: lower }));

      expect(layered(layer('user', { llm: own }), shared)).toMatchObject({
        owner,
        llm: { ...NO_MODEL, ...called },
      });
    },
  );

  it.each<[string, Partial<CalledModel>, object]>([
    ['its key', {}, { temperature: 1, extra_headers: 'ours', top_p: 0.5 }],
    [
      'its key and another model',
      { model: 'team/mine' },
      { temperature: 1, extra_headers: 'ours', top_p: 0.5 },
    ],
    ['a key of the upper one', { api_key: 'mine' }, { temperature: 1, extra_headers: 'mine' }],
    ['an address of the upper one', { base_url: GATEWAY }, { temperature: 1, extra_headers: 'mine' }],
  ])('sends the parameters of a layer with %s', (_, llm, parameters) => {
    const own = { ...layer('user', { llm }), parameters: { temperature: 1, extra_headers: 'mine' } };
    const shared = {
      ...layer('organization', { llm: desk }),
      parameters: { temperature: 0, extra_headers: 'ours', top_p: 0.5 },
    };

    expect(layered(own, shared).parameters).toEqual(parameters);
  });

  it.each([
    [{ model: 'ollama/ours', api_key: 'key' }, null],
    [{ model: 'ollama/ours', api_key: 'key', base_url: ' ' }, null],
    [{ model: 'ollama/ours', api_key: 'key', base_url: GATEWAY }, 'key'],
    [ours, 'key-ours'],
  ])('shares no key with what is called inside the sandbox: %o', (llm, key) => {
    expect(sharedModel({ owner: 'organization', llm: { ...NO_MODEL, ...llm } }).llm.api_key).toBe(key);
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
    const servers = (...names: string[]): SettingsLayer['toolServers'] => [
      commandServer('files', { command: names.join('-') }),
      ...names.map((name) => remoteServer(`https://${name}.example.com`, { name })),
    ];

    const { toolServers } = layered(
      layer('user', { toolServers: servers('mine', 'both') }),
      layer('operator', { toolServers: servers('both', 'files', 'given') }),
    );

    expect(toolServers?.map(({ name }) => name)).toEqual(['files', 'mine', 'both', 'given']);
    expect(toolServers).toContainEqual(commandServer('files', { command: 'mine-both' }));
  });
});
