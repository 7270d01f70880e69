import { Controller, Get, Param, Query, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { UserId } from '../../../auth/auth.decorators.js';
import { ApiRoute, documented, type DocumentedProblem, thrown } from '../../../common/openapi/api-route.js';
import { UNKNOWN_CONVERSATION } from '../../events/events.dto.js';
import { ConversationWorkspaceService, fileTooLarge } from '../conversation-workspace.service.js';
import { DownloadSender } from './download.sender.js';
import { FileQueryDto, GitQueryDto, SANDBOX_PROBLEMS } from './dto/conversation-actions.dto.js';
import { ConversationIdDto } from './dto/conversation.dto.js';

const PROBLEMS: DocumentedProblem[] = [
  documented(403, 'Path is outside of the workspace', 'The path leads out of the sandbox'),
  UNKNOWN_CONVERSATION,
  ...SANDBOX_PROBLEMS,
];
const FILE_TOO_LARGE = thrown(
  fileTooLarge(300 * 1024 * 1024, '3Yv5mQ8hZk2LrTnBx7Wc0d'),
  'The file is too large for one JSON string',
);
const READ_FILE =
  'A file in the folder that the agent works in, up to 256 MiB: a text (UTF-8, by its first 64 KiB) as a JSON string, ' +
  'any other file as its bytes, and a text too with `Accept: application/octet-stream`. A text with other bytes further ' +
  'on breaks off there. Eight downloads of a user may be under way at a time.';
const BYTES = 'application/octet-stream';

@ApiTags('Conversations')
@Controller('api/v1/app-conversations/:id')
export class ConversationWorkspaceController {
  constructor(
    private readonly workspace: ConversationWorkspaceService,
    private readonly downloads: DownloadSender,
  ) {}

  @Get('file')
  @ApiRoute('read_conversation_file', 'Read a file of a conversation', {
    description: READ_FILE,
    answer: {
      description: 'Its text as a JSON string, or its bytes; empty when there is no such file',
      content: {
        'application/json': { schema: { type: 'string', example: '# Plan\n\n1. Read the parser\n' } },
        'application/octet-stream': { schema: { type: 'string', format: 'binary' }, example: 'PNG…' },
      },
    },
    problems: [...PROBLEMS, FILE_TOO_LARGE],
    invalid: 'file_path',
  })
  async file(
    @UserId() userId: string,
    @Param() { id }: ConversationIdDto,
    @Query() { file_path: file = 'PLAN.md' }: FileQueryDto,
    @Res() response: Response,
  ): Promise<void> {
    const asBytes = response.req.accepts(['application/json', BYTES]) === BYTES;
    await this.downloads.send(userId, response, () => this.workspace.file(userId, id, file, asBytes));
  }

  @Get('git/changes')
  @ApiRoute('get_conversation_git_changes', 'List what the agent changed', {
    description:
      'Changed, new and deleted files below a folder, as git sees them; none outside of a repository.',
    answer: {
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
      description: 'By path',
    },
    problems: PROBLEMS,
  })
  async changes(
    @UserId() userId: string,
    @Param() { id }: ConversationIdDto,
    @Query() query: GitQueryDto,
  ): Promise<unknown> {
    return this.workspace.changes(userId, id, query);
  }

  @Get('git/diff')
  @ApiRoute('get_conversation_git_diff', 'Show what the agent changed in a file', {
    description: 'The whole file before and after.',
    answer: {
      schema: {
        type: 'object',
        properties: {
          original: { type: ['string', 'null'], description: 'Empty for a new file.' },
          modified: { type: ['string', 'null'], description: 'Empty for a deleted file.' },
        },
        required: ['original', 'modified'],
        example: { original: 'old\n', modified: 'new\n' },
      },
      description: 'Both sides',
    },
    problems: PROBLEMS,
  })
  async diff(
    @UserId() userId: string,
    @Param() { id }: ConversationIdDto,
    @Query() query: GitQueryDto,
  ): Promise<unknown> {
    return this.workspace.diff(userId, id, query);
  }
}
