import { Body, Controller, Delete, Get, Headers, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../../../auth/auth.decorators.js';
import { InvalidInputError } from '../../../common/errors/domain-error.js';
import { SUCCESS, type SuccessDto } from '../../../common/openapi/responses.js';
import { OptionalBodyPipe } from '../../../common/validation/validation.pipe.js';
import { idempotencyKey } from '../../idempotency/idempotency.service.js';
import { SandboxQueries } from '../sandbox.queries.js';
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
    private readonly queries: SandboxQueries,
    private readonly presenter: SandboxPresenter,
  ) {}

  @Get('search')
  @SearchSandboxesOperation()
  async search(
    @CurrentUser() user: AuthUser,
    @Query() { limit = DEFAULT_LIMIT, page_id: pageId }: SearchSandboxesQueryDto,
  ): Promise<SandboxPageDto> {
    return this.presenter.page(await this.queries.search(user.id, limit, pageId));
  }

  @Get()
  @GetSandboxesOperation()
  async get(
    @CurrentUser() user: AuthUser,
    @Query() { id: ids }: SandboxIdsQueryDto,
  ): Promise<(SandboxDto | null)[]> {
    return this.presenter.batch(await this.queries.batch(user.id, ids));
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
    return this.presenter.sandbox(await this.sandboxes.create(user.id, specId, idempotencyKey(key)));
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
    @Query() { sandbox_id: repeatedId }: DeleteSandboxQueryDto,
  ): Promise<SuccessDto> {
    requireSameId(id, repeatedId);
    await this.sandboxes.remove(user.id, id);
    return SUCCESS;
  }
}

/**
 * Some clients repeat the id of the path in the query.
 *
 * @throws InvalidInputError when the two differ: the wrong sandbox might be deleted
 */
function requireSameId(id: string, repeatedId: string | undefined): void {
  if (repeatedId !== undefined && repeatedId !== id) {
    throw new InvalidInputError([
      {
        loc: ['query', 'sandbox_id'],
        msg: 'Expected the same id as in the path, or none.',
        type: 'value_error',
      },
    ]);
  }
}
