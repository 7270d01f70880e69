import type { DocumentedProblem } from '../../common/openapi/documented-error.js';

/** 404 of every route with a conversation's id. */
export const UNKNOWN_CONVERSATION: DocumentedProblem = {
  status: 404,
  detail: 'There is no conversation with this id.',
  description: 'Unknown, or not yours',
};

/** What routes answer that need the sandbox of a conversation to run. */
export const SANDBOX_PROBLEMS: DocumentedProblem[] = [
  {
    status: 409,
    code: 'sandbox_not_running',
    detail:
      'The sandbox is PAUSED; resume it first with POST /api/v1/sandboxes/3kTMd9ZpQ2sVbX7cRfLw1A/resume.',
    description: 'The sandbox is PAUSED or STARTING, or the state of the conversation forbids it',
  },
  {
    status: 410,
    code: 'sandbox_not_running',
    detail: 'The sandbox is MISSING: the conversation can be read, but not continued.',
    description: 'The sandbox is gone',
  },
  {
    status: 502,
    code: 'upstream_error',
    detail: 'The agent server of the sandbox did not answer; try again.',
    description: 'The agent server failed',
  },
  {
    status: 503,
    code: 'sandbox_not_running',
    detail:
      'The sandbox is in ERROR (its status_detail says why); start it again with POST /api/v1/sandboxes/3kTMd9ZpQ2sVbX7cRfLw1A/resume.',
    description: 'The sandbox failed, or the service is not available at the moment',
  },
];
