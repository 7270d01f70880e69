import type { StartRequest } from '../../src/v1/app-conversations/start-task.entity.js';

/** A request that names nothing, but for what is given. */
export function sampleStartRequest(given: Partial<StartRequest> = {}): StartRequest {
  return {
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
    ...given,
  };
}
