import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems, invalidInput } from '../../../common/openapi/problems.js';
import { ApiBodyExamples, SuccessDto } from '../../../common/openapi/responses.js';
import { UNKNOWN_CONVERSATION } from '../../events/events.openapi.js';
import { SANDBOX_PROBLEMS } from './app-conversations.openapi.js';
import {
  ConfirmationResponseDto,
  MessageSentDto,
  SendMessageDto,
  SwitchAcpModelDto,
  SwitchProfileDto,
} from './dto/conversation-actions.dto.js';

const INVALID_ID = invalidInput(['path', 'id'], 'string_unicode', 'Expected text without NUL characters.');

/** Documents `POST /api/v1/app-conversations/{id}/send-message`. */
export function SendMessageOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'send_message_to_conversation',
      summary: 'Say something',
      description:
        'The agent takes it up at once, or with its next step when it works already. A paused sandbox is resumed for it.',
    }),
    ApiBodyExamples(SendMessageDto, {
      text: {
        summary: 'A text',
        value: { content: [{ type: 'text', text: 'Use the staging host instead.' }], run: true },
      },
      image: {
        summary: 'An image beside it; the agent waits for more',
        value: {
          content: [
            { text: 'It looks like this:' },
            { type: 'image', image_urls: ['https://images.example.com/screen.png'] },
          ],
          run: false,
        },
      },
    }),
    ApiOkResponse({ type: MessageSentDto, description: 'The agent server has it' }),
    ApiProblems(
      UNKNOWN_CONVERSATION,
      ...SANDBOX_PROBLEMS,
      413,
      415,
      invalidInput(['body', 'content'], 'missing', 'This member is required.'),
    ),
  );
}

/** Documents `POST /api/v1/app-conversations/{id}/respond-to-confirmation`. */
export function RespondToConfirmationOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'respond_to_confirmation',
      summary: 'Allow or refuse what the agent waits for',
      description: 'Only while the conversation is waiting_for_confirmation.',
    }),
    ApiBodyExamples(ConfirmationResponseDto, {
      accept: { summary: 'Go on', value: { accept: true } },
      reject: { summary: 'Do not', value: { accept: false, reason: 'Use the staging host.' } },
    }),
    ApiOkResponse({ type: SuccessDto, description: 'The agent goes on' }),
    ApiProblems(
      UNKNOWN_CONVERSATION,
      ...SANDBOX_PROBLEMS,
      413,
      415,
      invalidInput(['body', 'accept'], 'missing', 'This member is required.'),
    ),
  );
}

/** Documents `POST /api/v1/app-conversations/{id}/pause`. */
export function PauseConversationOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'pause_app_conversation',
      summary: 'Pause the agent',
      description: 'It stops after its current step, asked again at once. The sandbox goes on running.',
    }),
    ApiOkResponse({ type: SuccessDto, description: 'The agent pauses' }),
    ApiProblems(UNKNOWN_CONVERSATION, ...SANDBOX_PROBLEMS, INVALID_ID),
  );
}

/** Documents `POST /api/v1/app-conversations/{id}/run`. */
export function RunConversationOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'run_app_conversation',
      summary: 'Let the agent go on',
      description: 'After a pause, an error, or messages that were sent without `run`.',
    }),
    ApiOkResponse({ type: SuccessDto, description: 'The agent works' }),
    ApiProblems(UNKNOWN_CONVERSATION, ...SANDBOX_PROBLEMS, INVALID_ID),
  );
}

/** Documents `POST /api/v1/app-conversations/{id}/switch_profile`. */
export function SwitchProfileOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'switch_conversation_profile',
      summary: 'Go on with the model of a stored profile',
      description: 'From the next step of the agent on, with all that it knows.',
    }),
    ApiBodyExamples(SwitchProfileDto, {
      profile: { summary: 'A profile', value: { profile_name: 'fast' } },
    }),
    ApiOkResponse({ type: SuccessDto, description: 'The agent uses its model' }),
    ApiProblems(
      { status: 404, detail: "Profile 'fast' not found", description: 'Unknown conversation or profile' },
      {
        status: 409,
        code: 'sandbox_not_running',
        detail: 'The sandbox is PAUSED; resume it first with POST /api/v1/sandboxes/{id}/resume.',
        description: 'The sandbox does not run, or the model cannot be called',
      },
      410,
      413,
      415,
      502,
      503,
      invalidInput(['body', 'profile_name'], 'missing', 'This member is required.'),
    ),
  );
}

/** Documents `POST /api/v1/app-conversations/{id}/switch_acp_model`. */
export function SwitchAcpModelOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'switch_conversation_acp_model',
      summary: 'Let an ACP agent go on with another model',
      description: 'From its next turn on, with all that it knows. The conversation shows the new model.',
    }),
    ApiBodyExamples(SwitchAcpModelDto, {
      model: { summary: 'Another model', value: { model: 'claude-sonnet-4-5' } },
    }),
    ApiOkResponse({ type: SuccessDto, description: 'The agent uses it' }),
    ApiProblems(
      {
        status: 400,
        code: 'conflict',
        detail: 'The conversation has no ACP agent: start another one with the model that you want.',
        description: 'No ACP agent, or one that keeps its model; in the words of the agent server',
      },
      UNKNOWN_CONVERSATION,
      ...SANDBOX_PROBLEMS,
      {
        status: 504,
        code: 'upstream_error',
        detail: 'The program of the agent did not answer in time: try again.',
        description: 'The program of the agent is too slow',
      },
      413,
      415,
      invalidInput(['body', 'model'], 'missing', 'This member is required.'),
    ),
  );
}

const OUTSIDE_WORKSPACE = {
  status: 403,
  code: 'forbidden',
  detail: 'Path is outside of the workspace',
  description: 'The path leads out of the sandbox',
} as const;
const FILE_TOO_LARGE = {
  status: 413,
  code: 'payload_too_large',
  detail:
    "The file has 300 MiB; at most 256 MiB can be read as a JSON string. Download it with the sandbox's session_api_key: GET /api/v1/sandboxes/3Yv5mQ8hZk2LrTnBx7Wc0d/agent-server/api/file/download?path=…",
  description: 'The file is too large for one JSON string',
} as const;
const MISSING_PATH = invalidInput(['query', 'path'], 'missing', 'This member is required.');

/** Documents `GET /api/v1/app-conversations/{id}/file`. */
export function ReadFileOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'read_conversation_file',
      summary: 'Read a file of a conversation',
      description:
        'A file in the folder that the agent works in, up to 256 MiB: a text (UTF-8, by its first 64 KiB) as a JSON string, any other file as its bytes, and a text too with `Accept: application/octet-stream`. A text with other bytes further on breaks off there. Eight downloads of a user may be under way at a time.',
    }),
    ApiOkResponse({
      description: 'Its text as a JSON string, or its bytes; empty when there is no such file',
      content: {
        'application/json': { schema: { type: 'string', example: '# Plan\n\n1. Read the parser\n' } },
        'application/octet-stream': { schema: { type: 'string', format: 'binary' }, example: 'PNG…' },
      },
    }),
    ApiProblems(
      OUTSIDE_WORKSPACE,
      UNKNOWN_CONVERSATION,
      ...SANDBOX_PROBLEMS,
      FILE_TOO_LARGE,
      invalidInput(['query', 'file_path'], 'value_error', 'Expected at most 4096 characters.'),
    ),
  );
}

/** Documents `GET /api/v1/app-conversations/{id}/git/changes`. */
export function GitChangesOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'get_conversation_git_changes',
      summary: 'List what the agent changed',
      description:
        'Changed, new and deleted files below a folder, as git sees them; none outside of a repository.',
    }),
    ApiOkResponse({
      description: 'By path',
      schema: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            status: { type: 'string', enum: ['MOVED', 'ADDED', 'DELETED', 'UPDATED'] },
            path: { type: 'string' },
          },
          required: ['status', 'path'],
        },
        example: [{ status: 'UPDATED', path: 'src/parser.ts' }],
      },
    }),
    ApiProblems(OUTSIDE_WORKSPACE, UNKNOWN_CONVERSATION, ...SANDBOX_PROBLEMS, MISSING_PATH),
  );
}

/** Documents `GET /api/v1/app-conversations/{id}/git/diff`. */
export function GitDiffOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'get_conversation_git_diff',
      summary: 'Show what the agent changed in a file',
      description: 'The whole file before and after.',
    }),
    ApiOkResponse({
      description: 'Both sides',
      schema: {
        type: 'object',
        properties: {
          original: { type: ['string', 'null'], description: 'Empty for a new file.' },
          modified: { type: ['string', 'null'], description: 'Empty for a deleted file.' },
        },
        required: ['original', 'modified'],
        example: { original: 'old\n', modified: 'new\n' },
      },
    }),
    ApiProblems(OUTSIDE_WORKSPACE, UNKNOWN_CONVERSATION, ...SANDBOX_PROBLEMS, MISSING_PATH),
  );
}
