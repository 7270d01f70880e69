import { describe, expect, it } from '@jest/globals';
import { toListedConversation } from './conversation.adopter.js';

const NOW = new Date('2026-11-22T12:00:00Z');
const ID = '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f';
const PLAIN = {
  id: ID,
  title: null,
  model: null,
  agentKind: null,
  baseUrl: '',
  workingDir: '.',
  createdAt: NOW,
};

describe('toListedConversation', () => {
  it.each([
    ['an id alone', { id: ID }, {}],
    ['an id without dashes', { id: ID.replaceAll('-', '').toUpperCase() }, {}],
    ['a title', { id: ID, title: ' Fix\0it ' }, { title: 'Fix\u{FFFD}it' }],
    ['a title that is too long', { id: ID, title: 'x'.repeat(201) }, {}],
    ['titles of other types', { id: ID, title: { a: 1 } }, {}],
    [
      'the model and its address',
      { id: ID, agent: { llm: { model: 'openai/gpt-4o', base_url: 'https://models.example.com/v1' } } },
      { model: 'openai/gpt-4o', baseUrl: 'https://models.example.com/v1' },
    ],
    ['no address', { id: ID, agent: { llm: { model: 'm', base_url: null } } }, { model: 'm' }],
    [
      'an ACP agent with a model',
      {
        id: ID,
        agent: { kind: 'ACPAgent', llm: { model: 'acp-managed', base_url: 'x' }, acp_model: 'sonnet' },
      },
      { model: 'sonnet', agentKind: 'acp' },
    ],
    ['one that chooses its model', { id: ID, agent: { kind: 'ACPAgent' } }, { agentKind: 'acp' }],
    ['an endless model', { id: ID, agent: { llm: { model: 'm'.repeat(501) } } }, {}],
    [
      'the folder',
      { id: ID, workspace: { working_dir: '/workspace/app' } },
      { workingDir: '/workspace/app' },
    ],
    [
      'a time without a zone',
      { id: ID, created_at: '2026-11-22T11:00:00.123456' },
      { createdAt: new Date('2026-11-22T11:00:00.123Z') },
    ],
    ['a time in the future', { id: ID, created_at: '2027-01-01T00:00:00Z' }, {}],
    ['no time', { id: ID, created_at: 'yesterday' }, {}],
  ])('reads %s', (_name, value, expected) => {
    expect(toListedConversation(value, NOW)).toEqual({ ...PLAIN, ...expected });
  });

  it.each([
    ['null', null],
    ['a text', ID],
    ['an invalid id', { id: '../etc' }],
    ['no id', { title: 'x' }],
    ['what is being removed', { id: ID, execution_status: 'deleting' }],
  ])('leaves out %s', (_name, value) => {
    expect(toListedConversation(value, NOW)).toBeNull();
  });
});
