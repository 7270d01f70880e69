import { Body, Controller, Delete, Get, Headers, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { AuthUser } from '../../auth/auth-user.js';
import { CurrentUser } from '../../auth/current-user.decorator.js';
import { SUCCESS, type SuccessDto } from '../../common/openapi/success.dto.js';
import { OptionalBodyPipe } from '../../common/validation/optional-body.pipe.js';
import { idempotencyKey } from '../idempotency/idempotency-key.js';
import { CreateSandboxDto } from './dto/create-sandbox.dto.js';
import { DeleteSandboxQueryDto } from './dto/delete-sandbox-query.dto.js';
import { SandboxIdsQueryDto } from './dto/sandbox-ids-query.dto.js';
import type { SandboxPageDto } from './dto/sandbox-page.dto.js';
import type { SandboxDto } from './dto/sandbox.dto.js';
import { SearchSandboxesQueryDto } from './dto/search-sandboxes-query.dto.js';
import { sameId } from './same-id.js';
import { SandboxAnswers } from './sandbox-answers.js';
import {
  CreateSandboxOperation,
  DeleteSandboxOperation,
  GetSandboxesOperation,
  PauseSandboxOperation,
  ResumeSandboxOperation,
  SearchSandboxesOperation,
} from './sandboxes.operations.js';
import { SandboxesService } from './sandboxes.service.js';

const DEFAULT_LIMIT = 100;

@ApiTags('Sandboxes')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/sandboxes')
export class SandboxesController {
  constructor(
    private readonly sandboxes: SandboxesService,
    private readonly answers: SandboxAnswers,
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
