import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems } from '../../common/openapi/api-problems.decorator.js';
import { invalidInput } from '../../common/openapi/documented-error.js';
import { SANDBOX_PROBLEMS, UNKNOWN_CONVERSATION } from './conversation-problems.js';

const OUTSIDE = {
  status: 403,
  code: 'forbidden',
  detail: 'Path is outside of the workspace',
  description: 'The path leads out of the sandbox',
} as const;
const BAD_PATH = invalidInput(['query', 'path'], 'missing', 'This member is required.');

/** Documents `GET /api/v1/app-conversations/{id}/file`. */
export function ReadFileOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'read_conversation_file',
      summary: 'Read a file of a conversation',
      description: 'A text file in the folder that the agent works in.',
    }),
    ApiOkResponse({
      description: 'Its text as a JSON string; empty when there is no such file',
      schema: { type: 'string', example: '# Plan\n\n1. Read the parser\n' },
    }),
    ApiProblems(
      OUTSIDE,
      UNKNOWN_CONVERSATION,
      ...SANDBOX_PROBLEMS,
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
    ApiProblems(OUTSIDE, UNKNOWN_CONVERSATION, ...SANDBOX_PROBLEMS, BAD_PATH),
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
          original: { type: ['string', 'null'], description: 'Null for a new file.' },
          modified: { type: ['string', 'null'], description: 'Null for a deleted file.' },
        },
        required: ['original', 'modified'],
        example: { original: 'old\n', modified: 'new\n' },
      },
    }),
    ApiProblems(OUTSIDE, UNKNOWN_CONVERSATION, ...SANDBOX_PROBLEMS, BAD_PATH),
  );
}
