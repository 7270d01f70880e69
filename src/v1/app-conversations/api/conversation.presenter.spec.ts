import { describe, expect, it } from '@jest/globals';
import { sampleStartRequest } from '../../../../test/support/sample-start-request.js';
import { requestNotes } from './conversation.presenter.js';

const REQUEST = sampleStartRequest();

describe('startNotes', () => {
  it('has no notes about members that work as expected', () => {
    expect(
      requestNotes({
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
  ])('notes that %j has no effect', (members, expected) => {
    expect(requestNotes({ ...REQUEST, ...members })).toEqual([expect.stringContaining(expected)]);
  });
});
