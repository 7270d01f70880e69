import { Body, Controller, Get, Headers, Post, Query, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { type AuthUser, CurrentUser } from '../../../auth/auth.decorators.js';
import { ApiRoute, badInput, thrown } from '@slipway/api/openapi/api-route.js';
import { listWithNulls } from '@slipway/api/openapi/responses.js';
import { toPageDto } from '@slipway/api/pagination/page.dto.js';
import { ApiIdempotencyKey, idempotencyKey } from '../../idempotency/idempotency.service.js';
import { TOO_MANY_SANDBOXES } from '../../sandboxes/api/sandbox.dto.js';
import { quotaExceeded } from '../../sandboxes/sandbox-quota.js';
import { StartTaskQueries } from '../start-task.queries.js';
import { USER_FULL } from '../../events/followed-conversation.repository.js';
import { ConversationStarter } from '../start/conversation-starter.js';
import { tooManyConversations } from '../start/start-admission.js';
import { StartStream } from '../start/start-stream.js';
import { ConversationPresenter } from './conversation.presenter.js';
import { StartConversationDto } from './dto/start-conversation.dto.js';
import {
  SearchStartTasksQueryDto,
  StartTaskDto,
  StartTaskFilterQueryDto,
  StartTaskIdsQueryDto,
  StartTaskPageDto,
  toStartTaskFilter,
} from './dto/start-task.dto.js';

const DESCRIPTION =
  'Answers at once with a start task; a sandbox is made, the repository cloned and the agent started in the ' +
  'background. Ask `GET /api/v1/app-conversations/start-tasks?ids=` until it is READY, and has the id of the ' +
  'conversation, or ERROR, and says why. Where as many sandboxes run as may, the longest idle one is paused, ' +
  'which `detail` says, and while all are busy the start waits, unless the operator wants it refused then.';

const EXAMPLES = {
  plain: {
    summary: 'A task in a repository',
    value: {
      initial_message: { content: [{ type: 'text', text: 'Add a test for the parser.' }] },
      selected_repository: 'octo/app',
      selected_branch: 'main',
      git_provider: 'github',
    },
  },
  suggestedTask: {
    summary: 'A suggested task, as GET /api/user/suggested-tasks gave it',
    value: {
      suggested_task: {
        git_provider: 'github',
        task_type: 'FAILING_CHECKS',
        repo: 'octo/app',
        issue_number: 15,
        title: 'Retry card payments',
      },
    },
  },
  withSecrets: {
    summary: 'Without a repository, with an image, a model and a secret for this conversation',
    value: {
      title: 'Screen shots',
      llm_model: 'provider/model-1',
      initial_message: {
        content: [
          { type: 'text', text: 'What is wrong on this page?' },
          { type: 'image', image_urls: ['https://images.example.com/screen.png'] },
        ],
      },
      secrets: { DEPLOY_TOKEN: 'secret-example' },
    },
  },
};

const QUOTA_EXCEEDED = thrown(
  quotaExceeded({ maxRunning: 5, limitPolicy: 'reject' }),
  'Too many requests, too many starts that wait for a place, or no place at all where none is made (SANDBOX_LIMIT_POLICY)',
);
const TOO_MANY_CONVERSATIONS = thrown(
  tooManyConversations(10_000),
  'As many conversations or sandboxes as one user may have (MAX_CONVERSATIONS_PER_USER, MAX_SANDBOXES_PER_USER)',
);

const NO_ROOM_LEFT = thrown(USER_FULL, 'As many events as one user may have');

const START = {
  examples: EXAMPLES,
  problems: [TOO_MANY_CONVERSATIONS, TOO_MANY_SANDBOXES, QUOTA_EXCEEDED, NO_ROOM_LEFT],
  invalid: badInput(
    'body.selected_repository',
    'Expected the full name of a repository, such as octo/app, not its address.',
  ),
};

@ApiTags('Conversations')
@Controller('api/v1/app-conversations')
export class StartTasksController {
  constructor(
    private readonly starter: ConversationStarter,
    private readonly queries: StartTaskQueries,
    private readonly stream: StartStream,
    private readonly presenter: ConversationPresenter,
  ) {}

  @Post()
  @ApiIdempotencyKey('task', 'f1a2b3c4-7d6e-4f50-8a9b-0c1d2e3f4a5b')
  @ApiRoute('start_app_conversation', 'Start a conversation', {
    ...START,
    description: DESCRIPTION,
    answer: { type: StartTaskDto, description: 'The start task' },
  })
  async start(
    @CurrentUser() user: AuthUser,
    @Body() body: StartConversationDto,
    @Headers('idempotency-key') key: string | undefined,
  ): Promise<StartTaskDto> {
    return this.presenter.startTask(await this.starter.startFor(user, body, idempotencyKey(key)));
  }

  @Post('stream-start')
  @ApiIdempotencyKey('task', 'f1a2b3c4-7d6e-4f50-8a9b-0c1d2e3f4a5b')
  @ApiRoute('stream_app_conversation_start', 'Start a conversation and watch', {
    ...START,
    description:
      'Like `POST /api/v1/app-conversations`, but the answer stays open: an array that gets the task again with each ' +
      'change and ends with READY or ERROR. Whoever hangs up misses only the rest of the answer.',
    answer: { type: [StartTaskDto], description: 'The start task as it goes on' },
    examples: { plain: START.examples.plain },
  })
  async streamStart(
    @CurrentUser() user: AuthUser,
    @Body() body: StartConversationDto,
    @Headers('idempotency-key') key: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    await this.stream.send(await this.starter.startFor(user, body, idempotencyKey(key)), response);
  }

  @Get('start-tasks/search')
  @ApiRoute('search_app_conversation_start_tasks', 'List start tasks', {
    description: 'Newest first unless another order is asked for.',
    answer: { type: StartTaskPageDto, description: 'A page of start tasks' },
    invalid: 'sort_order',
  })
  async search(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchStartTasksQueryDto,
  ): Promise<StartTaskPageDto> {
    const { sort_order: order = 'CREATED_AT_DESC', limit, page_id: pageId } = query;
    const page = await this.queries.search(user, toStartTaskFilter(query), { order, limit, pageId });
    return toPageDto(page, (row) => this.presenter.startTask(row));
  }

  @Get('start-tasks/count')
  @ApiRoute('count_app_conversation_start_tasks', 'Count start tasks', {
    description:
      'Of those that `GET /api/v1/app-conversations/start-tasks/search` finds with the same filters.',
    answer: { schema: { type: 'integer', example: 3 }, description: 'How many there are' },
  })
  async count(@CurrentUser() user: AuthUser, @Query() query: StartTaskFilterQueryDto): Promise<number> {
    return this.queries.count(user, toStartTaskFilter(query));
  }

  @Get('start-tasks')
  @ApiRoute('get_app_conversation_start_tasks', 'Look up start tasks', {
    description: 'In the order of the ids asked for, with null for each that is unknown.',
    answer: { schema: listWithNulls(StartTaskDto), description: 'One element for each id' },
  })
  async findAll(
    @CurrentUser() user: AuthUser,
    @Query() { ids }: StartTaskIdsQueryDto,
  ): Promise<(StartTaskDto | null)[]> {
    const rows = await this.queries.batch(user, ids);
    return rows.map((row) => row && this.presenter.startTask(row));
  }
}
