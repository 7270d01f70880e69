import { Body, Controller, DefaultValuePipe, Delete, Get, Headers, Param, Post, Query } from '@nestjs/common';
import { ApiParam, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser, UserId } from '../../../auth/auth.decorators.js';
import { ApiRoute, badInput, documented, thrown } from '@slipway/api/openapi/api-route.js';
import { unknownId } from '../../../common/errors/domain-error.js';
import { listWithNulls, succeeded, SuccessDto } from '@slipway/api/openapi/responses.js';
import { toPageDto } from '@slipway/api/pagination/page.dto.js';
import { InputValidationPipe } from '@slipway/api/validation/validation.pipe.js';
import { ApiIdempotencyKey, idempotencyKey } from '../../idempotency/idempotency.service.js';
import { quotaExceeded } from '../sandbox-quota.js';
import { SandboxPorts } from '../sandbox-ports.js';
import { SandboxUrls } from '../sandbox-urls.js';
import { SandboxQueries } from '../sandbox.queries.js';
import {
  deletedSince,
  onlyAdministratorsListAll,
  OTHER_ID,
  requireSameId,
  SandboxesService,
  unknownSpecification,
} from '../sandboxes.service.js';
import {
  CreateSandboxDto,
  DeleteSandboxQueryDto,
  SandboxDto,
  SandboxIdsQueryDto,
  SandboxPageDto,
  SandboxPortDto,
  SearchSandboxesQueryDto,
  TOO_MANY_SANDBOXES,
  toSandboxDto,
} from './sandbox.dto.js';

const CREATE =
  'Answers at once with a sandbox that is STARTING; ask `GET /api/v1/sandboxes?id=` until it is RUNNING, or ERROR ' +
  'and says why. Where as many run as may, the longest idle one is paused, and `status_detail` of the new one ' +
  'names it, unless the operator wants the request refused then. Starting a conversation makes a sandbox by ' +
  'itself.';
const BY_ADMINISTRATORS = ' Administrators may do this with the sandboxes of all users.';
const PAUSE =
  'Ends every process in it, which frees memory and processor; files and conversations stay. A conversation that was ' +
  'running is paused after the resume, until it gets a message or is told to run. (What the service itself pauses ' +
  'goes on by itself.) The response comes when everything has ended and the sandbox is PAUSED, at the latest after ten ' +
  'seconds; until then it is RUNNING.' +
  BY_ADMINISTRATORS;
const RESUME =
  'After a pause, or after an error. It is STARTING then. Where as many run as may, the longest idle one is ' +
  'paused, and `status_detail` names it while this one starts, unless the operator wants the request refused ' +
  'then. Nothing happens when it runs already.' +
  BY_ADMINISTRATORS;

const UNKNOWN = thrown(unknownId('sandbox'));
const UNKNOWN_SPECIFICATION = thrown(unknownSpecification(), 'Unknown specification');
const DELETED = thrown(deletedSince(), 'Made under this key, and deleted since');
const ALL_BUSY = thrown(
  quotaExceeded({ maxRunning: 5, limitPolicy: 'pause_oldest_idle' }),
  'Too many requests, or no place for one more sandbox: all are busy, or none is paused to make room here (SANDBOX_LIMIT_POLICY)',
);
const NOT_SEPARATED = documented(
  403,
  'Another user has sandboxes, and nothing separates sandboxes on this machine from each other.',
  'The operator has to allow this (ALLOW_UNSANDBOXED)',
);
const ALL_FOR_ADMINISTRATORS = thrown(onlyAdministratorsListAll(), '`all`, and you are no administrator');

function SandboxId(): MethodDecorator {
  return ApiParam({
    name: 'id',
    description: 'Id of the sandbox.',
    schema: { type: 'string', maxLength: 64, example: '3Yv5mQ8hZk2LrTnBx7Wc0d' },
  });
}

@ApiTags('Sandboxes')
@Controller('api/v1/sandboxes')
export class SandboxesController {
  constructor(
    private readonly sandboxes: SandboxesService,
    private readonly queries: SandboxQueries,
    private readonly urls: SandboxUrls,
    private readonly ports: SandboxPorts,
  ) {}

  @Get('search')
  @ApiRoute('search_sandboxes', 'List sandboxes', {
    description: 'Your own, newest first; with `all`, those of all users for administrators.',
    answer: { type: SandboxPageDto, description: 'A page of sandboxes' },
    problems: [ALL_FOR_ADMINISTRATORS],
  })
  async search(
    @CurrentUser() user: AuthUser,
    @Query() { limit, page_id: pageId, all = false }: SearchSandboxesQueryDto,
  ): Promise<SandboxPageDto> {
    const page = all
      ? this.sandboxes.searchAll(user, limit, pageId)
      : this.queries.search(user.id, limit, pageId);
    return toPageDto(await page, (view) => toSandboxDto(view, this.urls));
  }

  @Get()
  @ApiRoute('get_sandboxes', 'Look up sandboxes', {
    description: 'In the order of the ids asked for, with null for each that is unknown or not yours.',
    answer: { schema: listWithNulls(SandboxDto), description: 'One element for each id' },
  })
  async get(
    @UserId() userId: string,
    @Query() { id: ids }: SandboxIdsQueryDto,
  ): Promise<(SandboxDto | null)[]> {
    const views = await this.queries.batch(userId, ids);
    return views.map((view) => view && toSandboxDto(view, this.urls));
  }

  @Post()
  @ApiIdempotencyKey('sandbox', '0c3b2a19-7d6e-4f50-8a9b-0c1d2e3f4a5b')
  @ApiRoute('create_sandbox', 'Start a sandbox', {
    description: CREATE,
    answer: { type: SandboxDto, description: 'The sandbox' },
    optionalBody: CreateSandboxDto,
    problems: [NOT_SEPARATED, UNKNOWN_SPECIFICATION, TOO_MANY_SANDBOXES, DELETED, ALL_BUSY],
    invalid: badInput(
      'header.Idempotency-Key',
      'This key was used for a request with another content; use a new one.',
    ),
  })
  async create(
    @UserId() userId: string,
    @Query() query: CreateSandboxDto,
    @Body(new DefaultValuePipe({}), new InputValidationPipe(CreateSandboxDto))
    body: Partial<CreateSandboxDto>,
    @Headers('idempotency-key') key: string | undefined,
  ): Promise<SandboxDto> {
    const specId = query.sandbox_spec_id ?? body.sandbox_spec_id ?? null;
    return toSandboxDto(await this.sandboxes.create(userId, specId, idempotencyKey(key)), this.urls);
  }

  @Get(':id/ports')
  @SandboxId()
  @ApiRoute('list_sandbox_ports', 'List the ports of a sandbox', {
    description:
      'Those of what agents start, and whether something listens there now. None unless it is RUNNING.',
    answer: { type: [SandboxPortDto], description: 'By name' },
    problems: [UNKNOWN],
  })
  async listPorts(@UserId() userId: string, @Param('id') id: string): Promise<SandboxPortDto[]> {
    return this.ports.list(userId, id);
  }

  @Post(':id/pause')
  @SandboxId()
  @ApiRoute('pause_sandbox', 'Pause a sandbox', {
    description: PAUSE,
    answer: {
      type: SuccessDto,
      description: 'It is paused; after ten seconds: it will be as soon as everything in it has ended',
    },
    problems: [UNKNOWN],
  })
  async pause(@CurrentUser() user: AuthUser, @Param('id') id: string): Promise<SuccessDto> {
    return succeeded(this.sandboxes.pause(await this.sandboxes.ownerFor(user, id), id));
  }

  @Post(':id/resume')
  @SandboxId()
  @ApiRoute('resume_sandbox', 'Resume a sandbox', {
    description: RESUME,
    answer: { type: SuccessDto, description: 'It runs, or is about to' },
    problems: [NOT_SEPARATED, UNKNOWN, ALL_BUSY],
  })
  async resume(@CurrentUser() user: AuthUser, @Param('id') id: string): Promise<SuccessDto> {
    return succeeded(this.sandboxes.resume(await this.sandboxes.ownerFor(user, id), id));
  }

  @Delete(':id')
  @SandboxId()
  @ApiRoute('delete_sandbox', 'Delete a sandbox', {
    description:
      'With its files, whatever it is doing. Its conversations stay readable; their `sandbox_status` is MISSING.' +
      BY_ADMINISTRATORS,
    answer: { type: SuccessDto, description: 'It is unknown from now on; its files go in the background' },
    problems: [UNKNOWN],
    invalid: OTHER_ID,
  })
  async remove(
    @CurrentUser() user: AuthUser,
    @Param('id') id: string,
    @Query() { sandbox_id: repeatedId }: DeleteSandboxQueryDto,
  ): Promise<SuccessDto> {
    requireSameId(id, repeatedId);
    return succeeded(this.sandboxes.remove(await this.sandboxes.ownerFor(user, id), id));
  }
}
