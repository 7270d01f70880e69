import { Body, Controller, Delete, Get, Param, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiRoute, documented, thrown } from '@slipway/api/openapi/api-route.js';
import {
  ApiKeyDto,
  ApiKeyIdDto,
  CreateApiKeyDto,
  IssuedApiKeyDto,
  KeyOwnerQueryDto,
  RevokeApiKeyQueryDto,
  toApiKeyDto,
  toIssuedApiKeyDto,
} from './api-keys.dto.js';
import { ApiKeysService } from './api-keys.service.js';
import { type AuthUser, CurrentUser } from './auth.decorators.js';
import { ownersOnly } from './user.repository.js';

const BODY_EXAMPLES = {
  own: { summary: 'A key of your own', value: { name: 'ci' } },
  temporary: {
    summary: 'A key that ends by itself',
    value: { name: 'demo', expires_at: '2030-01-31T12:00:00Z' },
  },
  reading: { summary: 'A key that changes nothing', value: { name: 'dashboard', scopes: ['read'] } },
  ofRepositories: {
    summary: 'A key for some repositories',
    value: { name: 'ci', scopes: ['read', 'run'], repositories: ['github:octo/app'] },
  },
  forSomebody: {
    summary: 'A key for another user; administrators only',
    value: { name: 'laptop', user_id: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f' },
  },
};

const NOT_YOURS = { status: 403, detail: 'Only administrators manage the keys of other users.' };
const OF_AN_OWNER = thrown(ownersOnly(), 'The key of an owner');
const NO_SUCH_USER = { status: 404, detail: 'There is no user with this id.', description: 'Unknown user' };
const NO_SUCH_KEY = documented(404, 'There is no API key with this id.', 'Unknown key, or not yours');
const TOO_MANY = documented(409, 'A user may have 50 keys; revoke one first.', 'As many keys as may be');

@ApiTags('API keys')
@Controller('api/v1/api-keys')
export class ApiKeysController {
  constructor(private readonly keys: ApiKeysService) {}

  @Post()
  @ApiRoute('create_api_key', 'Issue an API key', {
    description:
      'The key itself is in this answer and nowhere else. Administrators may issue keys for other users.',
    status: 201,
    answer: { type: IssuedApiKeyDto, description: 'The new key' },
    examples: BODY_EXAMPLES,
    problems: [NOT_YOURS, OF_AN_OWNER, NO_SUCH_USER, TOO_MANY],
    invalid: 'expires_at',
  })
  async issue(@CurrentUser() user: AuthUser, @Body() body: CreateApiKeyDto): Promise<IssuedApiKeyDto> {
    return toIssuedApiKeyDto(
      await this.keys.issueAs(user, {
        name: body.name,
        expiresAt: body.expires_at ?? null,
        notBefore: body.not_before ?? null,
        scopes: body.scopes ?? undefined,
        repositories: body.repositories ?? undefined,
        userId: body.user_id ?? undefined,
      }),
    );
  }

  @Get()
  @ApiRoute('list_api_keys', 'List API keys', {
    description: 'Newest first, without the keys themselves.',
    answer: { type: [ApiKeyDto], description: 'The keys, revoked and expired ones included' },
    problems: [NOT_YOURS, NO_SUCH_USER],
  })
  async list(@CurrentUser() user: AuthUser, @Query() query: KeyOwnerQueryDto): Promise<ApiKeyDto[]> {
    return (await this.keys.listAs(user, query.user_id)).map(toApiKeyDto);
  }

  @Delete(':id')
  @ApiRoute('revoke_api_key', 'Revoke an API key', {
    description:
      'Holds within a second on every replica. Revoking it again changes nothing but what `made` asks for.',
    status: 204,
    answer: { description: 'Revoked' },
    problems: [NO_SUCH_KEY, OF_AN_OWNER],
  })
  async revoke(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ApiKeyIdDto,
    @Query() { made }: RevokeApiKeyQueryDto,
  ): Promise<void> {
    await this.keys.revokeAs(user, id, made !== undefined);
  }
}
