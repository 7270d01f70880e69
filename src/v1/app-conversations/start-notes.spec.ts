import { describe, expect, it } from '@jest/globals';
import { startNotes } from './start-notes.js';
import type { StartRequest } from './start/start-request.js';

const REQUEST: StartRequest = {
  sandbox_id: null,
  sandbox_spec_id: null,
  conversation_id: null,
  initial_message: null,
  system_message_suffix: null,
  llm_model: null,
  selected_repository: null,
  selected_branch: null,
  git_provider: null,
  suggested_task: null,
  title: null,
  trigger: null,
  pr_number: [],
  parent_conversation_id: null,
  agent_type: 'default',
  public: null,
  secrets: null,
  tags: {},
};

describe('startNotes', () => {
  it('has nothing to say of what works as asked', () => {
    expect(
      startNotes({
        ...REQUEST,
        public: false,
        processors: [{ kind: 'SetTitleCallbackProcessor' }],
        plugins: [],
        observability_metadata: {},
        agent_profile_id: '',
      }),
    ).toEqual([]);
  });

  it.each([
    [{ agent_profile_id: 'x' }, 'agent_profile_id'],
    [{ plugins: [{ source: 'github:octo/plugins' }] }, 'plugins'],
    [
      { processors: [{ kind: 'SetTitleCallbackProcessor' }, { kind: 'SlackV1CallbackProcessor' }] },
      'for SlackV1CallbackProcessor.',
    ],
    [
      { observability_tags: ['nightly'], observability_span_name: 'x' },
      'observability_tags, observability_span_name',
    ],
    [{ agent_type: 'plan' as const }, 'PLAN.md'],
    [{ public: true }, 'public'],
  ])('names what of %j has no effect', (members, expected) => {
    expect(startNotes({ ...REQUEST, ...members })).toEqual([expect.stringContaining(expected)]);
  });
});
