import { Injectable } from '@nestjs/common';
import { jsonText } from '@slipway/common/json-access.js';
import { MASK } from '@slipway/common/secret-mask.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { toHexId } from '@slipway/common/identifiers.js';
import { callerMayOpenSandboxesOf } from '../../../common/scopes.js';
import { isCaller } from '@slipway/api/requests/request-context.js';
import { toWireStatus } from '../../sandboxes/sandbox-status.js';
import { SandboxUrls } from '../../sandboxes/sandbox-urls.js';
import { sessionKeyBinding } from '../../sandboxes/session-key.js';
import type { ConversationRow } from '../conversation-row.js';
import type { StartRequest } from '../start-task.entity.js';
import type { StartTaskRow } from '../start-task.queries.js';
import type { AppConversationDto } from './dto/conversation.dto.js';
import type { StartTaskDto } from './dto/start-task.dto.js';

@Injectable()
export class ConversationPresenter {
  constructor(
    private readonly cipher: SecretCipher,
    private readonly urls: SandboxUrls,
  ) {}

  /** @param owners addresses of users by their ids */
  conversation(row: ConversationRow, owners: ReadonlyMap<string, string> = new Map()): AppConversationDto {
    const status = toWireStatus(row.sandbox_status, row.address);
    const isRunning = status === 'RUNNING';
    const isOpen = callerMayOpenSandboxesOf(row.user_id);
    return {
      id: toHexId(row.id),
      created_by_user_id: row.user_id,
      created_by_email: owners.get(row.user_id) ?? null,
      visibility: row.visibility,
      sandbox_id: row.sandbox_id,
      selected_repository: row.selected_repository,
      selected_branch: row.selected_branch,
      git_provider: row.git_provider,
      title: row.title,
      trigger: row.trigger,
      pr_number: row.pr_number,
      llm_model: row.llm_model,
      agent_kind: row.agent === null && row.agent_kind !== 'acp' ? 'openhands' : 'acp',
      metrics: row.metrics,
      parent_conversation_id: row.parent_conversation_id && toHexId(row.parent_conversation_id),
      sub_conversation_ids: row.sub_conversation_ids.map(toHexId),
      public: row.public,
      tags: row.tags,
      metadata: row.metadata,
      branch: row.working_branch,
      pull_requests: row.pull_requests,
      result: row.result,
      follow: row.follow,
      created_at: row.created_at.toISOString(),
      updated_at: row.updated_at.toISOString(),
      sandbox_status: status,
      execution_status: isRunning ? row.execution_status : null,
      error: row.error,
      conversation_url:
        isRunning && isCaller(row.user_id)
          ? `${this.agentServer(row)}/api/conversations/${toHexId(row.id)}`
          : null,
      session_api_key:
        row.session_key && isOpen
          ? this.cipher.decrypt(row.session_key, sessionKeyBinding(row.sandbox_id))
          : null,
      acp_server: row.agent === null ? null : row.agent.replace(/^acp:/, ''),
      launched_agent_profile: null,
    };
  }

  startTask(row: StartTaskRow): StartTaskDto {
    const hasAgentServer = row.status === 'STARTING_CONVERSATION' || row.status === 'READY';
    return {
      id: toHexId(row.id),
      created_by_user_id: row.user_id,
      status: row.status,
      detail: startDetail(row),
      app_conversation_id: row.status === 'READY' ? toHexId(row.app_conversation_id) : null,
      sandbox_id: row.status === 'WORKING' ? row.request.sandbox_id : row.sandbox_id,
      agent_server_url:
        hasAgentServer && toWireStatus(row.sandbox_status, row.address) === 'RUNNING'
          ? this.agentServer(row)
          : null,
      request: requestEcho(row.request),
      ...(row.request.task_url !== undefined && { task_url: row.request.task_url }),
      created_at: row.created_at.toISOString(),
      updated_at: row.updated_at.toISOString(),
    };
  }

  /** Has no trailing slash. */
  private agentServer(row: Pick<ConversationRow, 'sandbox_id' | 'expose_port'>): string {
    return this.urls.agentServer(row.sandbox_id, row.expose_port);
  }
}

/** Returns the request in the order of the wire, with every secret masked. */
function requestEcho(request: StartRequest): StartTaskDto['request'] {
  const { conversation_id: conversationId, parent_conversation_id: parentId, secrets } = request;
  return {
    sandbox_id: request.sandbox_id,
    sandbox_spec_id: request.sandbox_spec_id,
    conversation_id: conversationId === null ? null : toHexId(conversationId),
    initial_message: request.initial_message,
    system_message_suffix: request.system_message_suffix,
    processors: request['processors'] ?? null,
    llm_model: request.llm_model,
    llm_profile: request.llm_profile ?? null,
    agent: request.agent ?? null,
    agent_profile_id: request['agent_profile_id'] ?? null,
    selected_repository: request.selected_repository,
    selected_branch: request.selected_branch,
    clone_submodules: request.clone_submodules ?? false,
    fetch_lfs: request.fetch_lfs ?? false,
    git_provider: request.git_provider,
    suggested_task: request.suggested_task,
    title: request.title,
    trigger: request.trigger,
    pr_number: request.pr_number,
    parent_conversation_id: parentId === null ? null : toHexId(parentId),
    agent_type: request.agent_type,
    public: request.public,
    visibility: request.visibility ?? 'private',
    observability_metadata: request['observability_metadata'] ?? null,
    observability_tags: request['observability_tags'] ?? null,
    observability_span_name: request['observability_span_name'] ?? null,
    plugins: request['plugins'] ?? null,
    secrets: secrets && Object.fromEntries(Object.keys(secrets).map((name) => [name, MASK])),
    secret_names: request.secret_names ?? null,
    git: request.git ?? 'write',
    fork: request.fork ?? null,
    clone_depth: request.clone_depth ?? null,
    clone_filter: request.clone_filter ?? null,
    egress: request.egress ?? null,
    repositories_read: request.repositories_read ?? null,
    tags: request.tags,
    metadata: request.metadata ?? {},
    result_schema: request.result_schema ?? null,
    follow: request.follow ?? null,
  };
}

/** Every conversation gets a title, so no note is needed about it. */
const TITLE_PROCESSOR = 'SetTitleCallbackProcessor';

/** Sentences about members that have no effect, or another one than expected. */
export function requestNotes(request: StartRequest): string[] {
  const processors = asList(request['processors'])
    .map((processor) => jsonText(processor, 'kind') ?? '')
    .filter((kind) => kind !== TITLE_PROCESSOR);
  const traced = ['observability_metadata', 'observability_tags', 'observability_span_name'].filter(
    (name) => !isEmpty(request[name]),
  );
  const notes = [
    !isEmpty(request['agent_profile_id']) &&
      'agent_profile_id has no effect: there are no agent profiles here.',
    !isEmpty(request['plugins']) && 'plugins has no effect: plugins are not loaded here.',
    processors.length > 0 && `processors has no effect for ${processors.join(', ')}.`,
    traced.length > 0 && `${traced.join(', ')}: no effect, conversations are not traced here.`,
    request.agent_type === 'plan' &&
      'agent_type plan: the usual agent, told to write a plan into PLAN.md and to change nothing else.',
    request.public === true && 'public is kept and shown, but shares nothing: visibility does.',
  ];
  return notes.filter((note) => note !== false);
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function isEmpty(value: unknown): boolean {
  return (
    value === null ||
    value === undefined ||
    value === '' ||
    (typeof value === 'object' && Object.keys(value).length === 0)
  );
}

/** Progress or failure, followed by the notes. */
function startDetail({
  detail,
  notes,
  request,
}: Pick<StartTaskRow, 'detail' | 'notes' | 'request'>): string | null {
  const further = [...notes, ...requestNotes(request)].filter((note) => detail?.includes(note) !== true);
  const lines = [...(detail === null ? [] : [detail]), ...new Set(further)];
  return lines.length === 0 ? null : lines.join('\n');
}
