import { Controller, Get, Query, Res } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { type AuthUser, CurrentUser } from '../../auth/auth.decorators.js';
import {
  type ProviderListing,
  RepositoryListsService,
} from '../../git-providers/repository-lists.service.js';
import { providerStatusHeader } from '../../suggested-tasks/provider-status.js';
import {
  type BranchPageDto,
  type InstallationPageDto,
  type RepositoryPageDto,
  SearchBranchesQueryDto,
  SearchInstallationsQueryDto,
  SearchRepositoriesQueryDto,
  toBranchDto,
  toBranchQuery,
  toListPage,
  toListRange,
  toRepositoryDto,
  toRepositoryQuery,
} from './repository-lists.dto.js';
import {
  SearchBranchesOperation,
  SearchInstallationsOperation,
  SearchRepositoriesOperation,
} from './repository-lists.openapi.js';

/** What a user can start a conversation on: repositories and their branches, at each of their git providers. */
@ApiTags('Git providers')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/git')
export class RepositoryListsController {
  constructor(private readonly lists: RepositoryListsService) {}

  @Get('repositories/search')
  @SearchRepositoriesOperation()
  async repositories(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchRepositoriesQueryDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<RepositoryPageDto> {
    const found = await this.lists.findRepositories(user.id, query.provider, toRepositoryQuery(query));
    return toListPage('repositories', withStatus(response, found), toRepositoryDto);
  }

  @Get('branches/search')
  @SearchBranchesOperation()
  async branches(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchBranchesQueryDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<BranchPageDto> {
    const found = await this.lists.findBranches(user.id, query.provider, toBranchQuery(query));
    return toListPage('branches', withStatus(response, found), toBranchDto);
  }

  @Get('installations/search')
  @SearchInstallationsOperation()
  async installations(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchInstallationsQueryDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<InstallationPageDto> {
    const found = await this.lists.findInstallations(
      user.id,
      query.provider,
      toListRange('installations', query),
    );
    return toListPage('installations', withStatus(response, found), (id) => id);
  }
}

/** Sets the header that says how old the list is, as suggested tasks do. */
function withStatus<T>(response: Response, listing: ProviderListing<T>): ProviderListing<T> {
  const { provider, read } = listing;
  const { stale, age, value } = read;
  const count = value.items.length;
  response.set(
    'X-Provider-Status',
    providerStatusHeader([
      stale ? { provider, status: 'stale', age, count } : { provider, status: 'ok', count },
    ]),
  );
  return listing;
}
