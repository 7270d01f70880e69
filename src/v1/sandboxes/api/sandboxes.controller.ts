import { Body, Controller, Delete, Get, Headers, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../../../auth/auth.decorators.js';
import { InvalidInputError } from '../../../common/errors/domain-error.js';
import { SUCCESS, type SuccessDto } from '../../../common/openapi/responses.js';
import { OptionalBodyPipe } from '../../../common/validation/validation.pipe.js';
import { idempotencyKey } from '../../idempotency/idempotent-requests.js';
import { SandboxesService } from '../sandboxes.service.js';
import {
  CreateSandboxDto,
  DeleteSandboxQueryDto,
  type SandboxDto,
  SandboxIdsQueryDto,
  type SandboxPageDto,
  SearchSandboxesQueryDto,
} from './sandbox.dto.js';
import { SandboxPresenter } from './sandbox.presenter.js';
import {
  CreateSandboxOperation,
  DeleteSandboxOperation,
  GetSandboxesOperation,
  PauseSandboxOperation,
  ResumeSandboxOperation,
  SearchSandboxesOperation,
} from './sandboxes.openapi.js';

const DEFAULT_LIMIT = 100;

@ApiTags('Sandboxes')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/sandboxes')
export class SandboxesController {
  constructor(
    private readonly sandboxes: SandboxesService,
    private readonly answers: SandboxPresenter,
  ) {}

  @Get('search')
  @SearchSandboxesOperation()
  async search(
    @CurrentUser() user: AuthUser,
    @Query() { limit = DEFAULT_LIMIT, page_id: pageId }: SearchSandboxesQueryDto,
  ): Promise<SandboxPageDto> {
    return this.answers.page(await this.sandboxes.search(user.id, limit, pageId));
  }

  @Get()
  @GetSandboxesOperation()
  async get(
    @CurrentUser() user: AuthUser,
    @Query() { id: ids }: SandboxIdsQueryDto,
  ): Promise<(SandboxDto | null)[]> {
    return this.answers.batch(await this.sandboxes.batch(user.id, ids));
  }

  @Post()
  @HttpCode(200)
  @CreateSandboxOperation()
  async create(
    @CurrentUser() user: AuthUser,
    @Query() query: CreateSandboxDto,
    @Body(new OptionalBodyPipe(CreateSandboxDto)) body: Partial<CreateSandboxDto>,
    @Headers('idempotency-key') key: string | undefined,
  ): Promise<SandboxDto> {
    const specId = query.sandbox_spec_id ?? body.sandbox_spec_id ?? null;
    return this.answers.sandbox(await this.sandboxes.create(user.id, specId, idempotencyKey(key)));
  }

  @Post(':id/pause')
  @HttpCode(200)
  @PauseSandboxOperation()
  async pause(@CurrentUser() user: AuthUser, @Param('id') id: string): Promise<SuccessDto> {
    await this.sandboxes.pause(user.id, id);
    return SUCCESS;
  }

  @Post(':id/resume')
  @HttpCode(200)
  @ResumeSandboxOperation()
  async resume(@CurrentUser() user: AuthUser, @Param('id') id: string): Promise<SuccessDto> {
    await this.sandboxes.resume(user.id, id);
    return SUCCESS;
  }

  @Delete(':id')
  @DeleteSandboxOperation()
  async remove(
    @CurrentUser() user: AuthUser,
    @Param('id') id: string,
    @Query() { sandbox_id: again }: DeleteSandboxQueryDto,
  ): Promise<SuccessDto> {
    await this.sandboxes.remove(user.id, sameId(id, again));
    return SUCCESS;
  }
}

/**
 * The id of the path, which some clients repeat in the query.
 *
 * @throws InvalidInputError when the two are not the same: a sandbox that is not meant must not go
 */
function sameId(inPath: string, inQuery: string | undefined): string {
  if (inQuery !== undefined && inQuery !== inPath) {
    throw new InvalidInputError([
      {
        loc: ['query', 'sandbox_id'],
        msg: 'Expected the same id as in the path, or none.',
        type: 'value_error',
      },
    ]);
  }
  return inPath;
}
