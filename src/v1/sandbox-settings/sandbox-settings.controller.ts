import { Controller, Get, Header, Headers, Param, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type AuthUser, BesideSandboxKey, CurrentUser } from '../../auth/auth.decorators.js';
import { ApiRoute, badInput, documented, thrown } from '@slipway/api/openapi/api-route.js';
import { requireScope } from '../../common/scopes.js';
import { badSecretName } from '../../settings/secrets/secrets.dto.js';
import { unknownSecret } from '../../settings/secrets/custom-secret.repository.js';
import {
  CurrentSandbox,
  ActsForOwner,
  noSandboxKey,
  type SandboxKeyHolder,
} from '../sandboxes/sandbox-key.guard.js';
import {
  SandboxIdDto,
  SandboxSecretPathDto,
  SandboxSecretsDto,
  UserInfoDto,
  UserInfoQueryDto,
} from './sandbox-settings.dto.js';
import { SandboxSecretsService } from './sandbox-secrets.service.js';
import { sandboxOfAnother, SandboxSettingsService } from './sandbox-settings.service.js';

const NO_KEY = thrown(
  noSandboxKey(),
  'No valid key, or secrets are asked for without the key of a running sandbox',
);
const SANDBOX_OF_ANOTHER = thrown(sandboxOfAnother(), "The key of another user's sandbox");
const NO_SANDBOX_KEY = thrown(
  noSandboxKey(),
  'No key, not the key of a sandbox, or the sandbox is not running',
);
const UNKNOWN_SECRET = thrown(unknownSecret('DEPLOY_TOKEN'), 'Unknown name');
const OTHER_SANDBOX = documented(403, 'The key belongs to another sandbox.', 'The key of another sandbox');

@ApiTags('Settings')
@BesideSandboxKey()
@Controller('api/v1/users/me')
export class CurrentUserController {
  constructor(private readonly settings: SandboxSettingsService) {}

  @Get()
  @ApiRoute('get_current_user', 'Show the user behind the key', {
    description:
      'The settings with the id of the user; the defaults when nothing was stored. Keys are masked. With `expose_secrets=true` they, and those of tool servers, come in clear: only for a running sandbox of the user, whose key is in `X-Session-API-Key` beside the key of the user, which has the scope `run`, in `Authorization` or `X-Access-Token`.',
    answer: { type: UserInfoDto, description: 'The user' },
    problems: [NO_KEY, SANDBOX_OF_ANOTHER],
    invalid: 'expose_secrets',
  })
  async get(
    @CurrentUser() user: AuthUser,
    @Query() { expose_secrets: expose = false }: UserInfoQueryDto,
    @Headers('x-session-api-key') sandboxKey: string | undefined,
  ): Promise<UserInfoDto> {
    if (!expose) {
      return this.settings.userInfo(user.id);
    }
    requireScope(user, 'run');
    return this.settings.userInfoInClear(user.id, sandboxKey);
  }
}

@ApiTags('Sandboxes')
@ActsForOwner()
@Controller('api/v1/sandboxes/:sandbox_id/settings/secrets')
export class SandboxSecretsController {
  constructor(private readonly secrets: SandboxSecretsService) {}

  @Get()
  @ApiRoute('list_sandbox_secrets', "List the secrets of a sandbox's owner", {
    description:
      "For what runs in the sandbox, with the sandbox's key. Custom secrets, and git tokens as `GITHUB_TOKEN`, `GITLAB_TOKEN` and `BITBUCKET_TOKEN` unless the operator keeps these back; names and descriptions only. Where each conversation of the sandbox was started with `secret_names`, only those.",
    answer: { type: SandboxSecretsDto, description: 'The secrets, by name' },
    problems: [NO_SANDBOX_KEY, OTHER_SANDBOX],
    invalid: badInput('path.sandbox_id', 'Expected the id of a sandbox.'),
  })
  async list(
    @CurrentSandbox() holder: SandboxKeyHolder,
    @Param() { sandbox_id: id }: SandboxIdDto,
  ): Promise<SandboxSecretsDto> {
    return { secrets: await this.secrets.list(holder, id) };
  }

  @Get(':secret_name')
  @Header('Content-Type', 'text/plain; charset=utf-8')
  @ApiRoute('get_sandbox_secret', "Read a secret of a sandbox's owner", {
    description:
      "For what runs in the sandbox, with the sandbox's key. The value as it is, as text. One that no conversation of the sandbox may see is not found.",
    answer: {
      description: 'The value',
      content: { 'text/plain': { schema: { type: 'string', example: 'secret-example' } } },
    },
    problems: [NO_SANDBOX_KEY, OTHER_SANDBOX, UNKNOWN_SECRET, 502, 504],
    invalid: badSecretName('path.secret_name'),
  })
  async get(
    @CurrentSandbox() holder: SandboxKeyHolder,
    @Param() { sandbox_id: id, secret_name: name }: SandboxSecretPathDto,
  ): Promise<string> {
    return this.secrets.find(holder, id, name);
  }
}
