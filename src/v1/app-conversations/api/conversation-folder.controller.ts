import { Controller, Get, Param, Query, Res } from '@nestjs/common';
import { ApiProperty, ApiSchema, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { type AuthUser, CurrentUser } from '../../../auth/auth.decorators.js';
import { ApiRoute, documented, type DocumentedProblem, thrown } from '@slipway/api/openapi/api-route.js';
import { Shown } from '@slipway/api/openapi/responses.js';
import { requireScope } from '../../../common/scopes.js';
import { ConversationOwner, NeedsAccess } from '../../events/conversation-access.guard.js';
import { ConversationIdDto, UNKNOWN_CONVERSATION } from '../../events/events.dto.js';
import {
  ConversationWorkspaceService,
  type ConversationSkill,
  fileTooLarge,
  type HookEvent,
} from '../conversation-workspace.service.js';
import { DownloadSender } from './download.sender.js';
import {
  FileQueryDto,
  GitQueryDto,
  SANDBOX_PROBLEMS,
  WorkspacePath,
} from './dto/conversation-actions.dto.js';

class FilesQueryDto {
  @WorkspacePath("Folder: absolute, or below the conversation's folder, which is the default.", {
    default: '.',
    example: '/workspace/project',
  })
  path?: string;
}

@ApiSchema({ name: 'SkillResponse' })
class SkillDto implements ConversationSkill {
  @ApiProperty({ example: 'release-notes' }) name: string;

  @Shown(
    'repo: always part of the prompt. knowledge: given to the agent with a message that has one of its words. agentskills: read by the agent when it needs it.',
    'knowledge',
    { enum: ['repo', 'knowledge', 'agentskills'] },
  )
  type: ConversationSkill['type'];

  @ApiProperty({ example: 'Write one line per change, the user first.' }) content: string;
  @ApiProperty({ type: [String], example: ['changelog'] }) triggers: string[];
}

@ApiSchema({ name: 'GetSkillsResponse' })
class SkillsDto {
  @ApiProperty({ type: [SkillDto] }) skills: ConversationSkill[];
}

@ApiSchema({ name: 'HookDefinitionResponse' })
class HookDto {
  @ApiProperty({ example: 'command' }) type: string;
  @ApiProperty({ example: '.openhands/hooks/check.sh' }) command: string;
  @ApiProperty({ description: 'Seconds.', example: 60 }) timeout: number;
  @ApiProperty({ example: false }) async: boolean;
}

@ApiSchema({ name: 'HookMatcherResponse' })
class HookMatcherDto {
  @Shown('Which tools: `*`, a name or a pattern.', 'terminal') matcher: string;
  @ApiProperty({ type: [HookDto] }) hooks: HookDto[];
}

@ApiSchema({ name: 'HookEventResponse' })
class HookEventDto implements HookEvent {
  @ApiProperty({ example: 'pre_tool_use' }) event_type: string;
  @ApiProperty({ type: [HookMatcherDto] }) matchers: HookMatcherDto[];
}

@ApiSchema({ name: 'GetHooksResponse' })
class HooksDto {
  @ApiProperty({ type: [HookEventDto] }) hooks: HookEvent[];
}

const FILE_PROBLEMS: DocumentedProblem[] = [
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

const AS_OF = {
  type: 'string' as const,
  format: 'date-time',
  description: 'When it was kept; absent while the sandbox runs.',
};

const KEPT_AT = {
  description: 'When they were kept; absent while the sandbox runs.',
  schema: { type: 'string' as const, example: 'Tue, 31 Jan 2026 12:00:00 GMT' },
};

/** A sandbox that does not run has nothing to show, which is no failure. */
const UNREACHABLE = SANDBOX_PROBLEMS.filter(({ status }) => status === 502);

@ApiTags('Conversations')
@Controller('api/v1/app-conversations/:id')
export class ConversationFolderController {
  constructor(
    private readonly workspace: ConversationWorkspaceService,
    private readonly downloads: DownloadSender,
  ) {}

  @Get('files')
  @NeedsAccess('read')
  @ApiRoute('list_conversation_files', 'List the files of a conversation', {
    description:
      'Up to 2,000 paths below a folder, relative to it and in order, without folders of installed packages, of caches and of builds. None when there is no such folder. While the sandbox does not run, those that were kept when the last run ended or it was stopped, of the last hundred conversations.',
    answer: {
      schema: { type: 'array', items: { type: 'string' }, example: ['README.md', 'src/parser.ts'] },
      description: 'Paths',
      headers: { 'Last-Modified': KEPT_AT },
    },
    problems: [UNKNOWN_CONVERSATION, ...SANDBOX_PROBLEMS],
    invalid: 'path',
  })
  async files(
    @CurrentUser() { id: callerId }: AuthUser,
    @ConversationOwner() ownerId: string,
    @Param() { id }: ConversationIdDto,
    @Query() { path = '.' }: FilesQueryDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<string[]> {
    const { paths, asOf } = await this.workspace.files(ownerId, id, path, ownerId !== callerId);
    if (asOf !== null) {
      response.set('Last-Modified', asOf.toUTCString());
    }
    return paths;
  }

  @Get('skills')
  @NeedsAccess('own')
  @ApiRoute('get_conversation_skills', 'What the agent of a conversation knows', {
    description:
      "The skills of the conversation's folder and its repository (AGENTS.md, .agents/skills, .openhands/skills, .openhands/microagents), and those in the home of the sandbox. Those in `disabled_skills` of the settings are left out. None unless the sandbox runs.",
    answer: { type: SkillsDto, description: 'As they are in the sandbox now' },
    problems: [UNKNOWN_CONVERSATION, ...UNREACHABLE],
  })
  async list(@ConversationOwner() userId: string, @Param() { id }: ConversationIdDto): Promise<SkillsDto> {
    return { skills: await this.workspace.skills(userId, id) };
  }

  @Get('hooks')
  @NeedsAccess('own')
  @ApiRoute('get_conversation_hooks', 'What a repository wants to have run at events', {
    description:
      "The hooks in `.openhands/hooks.json` of the conversation's folder, as that file is now. None unless the sandbox runs. Only stock agent servers run them.",
    answer: { type: HooksDto, description: 'By event' },
    problems: [UNKNOWN_CONVERSATION, ...UNREACHABLE],
  })
  async hooks(@ConversationOwner() userId: string, @Param() { id }: ConversationIdDto): Promise<HooksDto> {
    return { hooks: await this.workspace.hooks(userId, id) };
  }

  @Get('file')
  @NeedsAccess('own')
  @ApiRoute('read_conversation_file', 'Read a file of a conversation', {
    description: READ_FILE,
    answer: {
      description: 'Its text as a JSON string, or its bytes; empty when there is no such file',
      content: {
        'application/json': { schema: { type: 'string', example: '# Plan\n\n1. Read the parser\n' } },
        'application/octet-stream': { schema: { type: 'string', format: 'binary' }, example: 'PNG…' },
      },
    },
    problems: [...FILE_PROBLEMS, FILE_TOO_LARGE],
    invalid: 'file_path',
  })
  async file(
    @ConversationOwner() userId: string,
    @Param() { id }: ConversationIdDto,
    @Query() { file_path: file = 'PLAN.md' }: FileQueryDto,
    @Res() response: Response,
  ): Promise<void> {
    const asBytes = response.req.accepts(['application/json', BYTES]) === BYTES;
    await this.downloads.send(userId, response, () => this.workspace.file(userId, id, file, asBytes));
  }

  @Get('git/changes')
  @NeedsAccess('read')
  @ApiRoute('get_conversation_git_changes', 'List what the agent changed', {
    description:
      'Changed, new and deleted files below a folder, as git sees them; none outside of a repository. ' +
      'While the sandbox does not run, those that were kept when the last run ended or it was stopped, with their time: ' +
      'the newest 200 files, 2 MiB together, of the last hundred conversations.',
    answer: {
      schema: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            status: { type: 'string', enum: ['MOVED', 'ADDED', 'DELETED', 'UPDATED'] },
            path: { type: 'string' },
            as_of: AS_OF,
          },
          required: ['status', 'path'],
        },
        example: [{ status: 'UPDATED', path: 'src/parser.ts' }],
      },
      description: 'By path',
    },
    problems: FILE_PROBLEMS,
  })
  async changes(
    @CurrentUser() user: AuthUser,
    @ConversationOwner() ownerId: string,
    @Param() { id }: ConversationIdDto,
    @Query() query: GitQueryDto,
  ): Promise<unknown> {
    return this.workspace.changes(ownerId, id, withinRights(user, ownerId, query));
  }

  @Get('git/diff')
  @NeedsAccess('read')
  @ApiRoute('get_conversation_git_diff', 'Show what the agent changed in a file', {
    description:
      'The whole file before and after; while the sandbox does not run, as it was kept, if it was.',
    answer: {
      schema: {
        type: 'object',
        properties: {
          original: { type: ['string', 'null'], description: 'Empty for a new file.' },
          modified: { type: ['string', 'null'], description: 'Empty for a deleted file.' },
          as_of: AS_OF,
        },
        required: ['original', 'modified'],
        example: { original: 'old\n', modified: 'new\n' },
      },
      description: 'Both sides',
    },
    problems: FILE_PROBLEMS,
  })
  async diff(
    @CurrentUser() user: AuthUser,
    @ConversationOwner() ownerId: string,
    @Param() { id }: ConversationIdDto,
    @Query() query: GitQueryDto,
  ): Promise<unknown> {
    return this.workspace.diff(ownerId, id, withinRights(user, ownerId, query));
  }
}

/** Readers get what is kept. A resume starts work: a key that may not run gets what is there without one. @throws DomainError insufficient_scope */
function withinRights(
  user: AuthUser,
  ownerId: string,
  query: GitQueryDto,
): GitQueryDto & { keptOnly: boolean } {
  if (user.id !== ownerId) {
    return Object.assign({}, query, { keptOnly: true });
  }
  if (query.resume === true) {
    requireScope(user, 'run');
  }
  const allowed = user.scopes.includes('run') ? {} : { resume: false };
  return Object.assign({ keptOnly: false }, query, allowed);
}
