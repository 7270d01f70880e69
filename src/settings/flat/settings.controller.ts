import { Body, Controller, Get, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiRoute, badInput, thrown } from '@slipway/api/openapi/api-route.js';
import { INVALID_TOKEN } from '../../git-providers/git-provider-problem.js';
import { MCP_CONFIG_EXAMPLE } from '@slipway/tool-servers/mcp-config.dto.js';
import {
  SHOWN_ONLY,
  unknownMembers,
  SettingsDto,
  SettingsStoredDto,
  toSettingsStoredDto,
  StoredSettingsDto,
  toStoredSettingsDto,
} from './settings.dto.js';
import { SETTINGS } from '@slipway/settings/settings.schema.js';
import { ADMINISTRATORS_CHANGE, SettingsOwner } from '../settings-owner.js';
import { settingsNotFound, SettingsService } from './settings.service.js';

const STORE =
  'Merges the given members into what is stored: all of the request, or nothing. Members left out keep their values; ' +
  'null clears a member unless its description says otherwise. A changed model is checked with its server by one ' +
  'request of at most 5 seconds; what that does not accept is stored all the same. `warnings` names it, members that are not known, and those whose ' +
  'null kept a stored value.';

const IGNORED = 'This member is not known here, and was ignored.';

export const SETTINGS_EXAMPLES = {
  language: { summary: 'One member; all others stay', value: { language: 'en' } },
  first: {
    summary: 'Language, model and author of commits',
    value: {
      language: 'en',
      agent: 'CodeActAgent',
      llm_model: 'provider/model-1',
      llm_api_key: 'llm-key-example',
      max_iterations: 100,
      confirmation_mode: false,
      git_user_name: 'Ada Lovelace',
      git_user_email: 'ada@example.com',
    },
  },
  clear: {
    summary: 'Clear what was set: null, or blank text where null keeps the stored value',
    value: { max_budget_per_task: null, llm_base_url: '' },
  },
  toolServers: { summary: 'Tool servers', value: { mcp_config: MCP_CONFIG_EXAMPLE } },
  tokensAndSecrets: {
    summary: 'A git-provider token and a custom secret along with settings',
    value: {
      language: 'en',
      secrets_store: {
        provider_tokens: { github: { token: 'ghp_exampleExampleExampleExampleExample1' } },
        custom_secrets: {
          DEPLOY_TOKEN: { secret: 'secret-example', description: 'Token of the deployment service' },
        },
      },
    },
  },
};

@ApiTags('Settings')
@Controller('api/settings')
export class SettingsController {
  constructor(private readonly settings: SettingsService) {}

  @Post()
  @ApiRoute('store_settings_', 'Store settings', {
    description: STORE,
    answer: {
      type: SettingsStoredDto,
      description: 'Settings stored successfully',
      example: { message: 'Settings stored' },
    },
    examples: SETTINGS_EXAMPLES,
    problems: [INVALID_TOKEN, ADMINISTRATORS_CHANGE],
    invalid: badInput('body.max_iterations', 'Expected a whole number; this text is not one.', 'int_parsing'),
  })
  async store(
    @SettingsOwner() ownerId: string,
    @Body() body: SettingsDto,
    @Body() given: Record<string, unknown>,
  ): Promise<SettingsStoredDto> {
    const warnings = await this.settings.store(ownerId, body);
    const unknown = unknownMembers(
      given,
      IGNORED,
      (name) => Object.hasOwn(SETTINGS, name) || SHOWN_ONLY.has(name),
    );
    return toSettingsStoredDto([...warnings, ...unknown], body.secrets_store?.custom_secrets);
  }

  @Get()
  @ApiRoute('load_settings_', 'Show settings', {
    description: 'Keys, tokens and secrets are never shown, only that they are set.',
    answer: { type: StoredSettingsDto, description: 'The settings' },
    problems: [thrown(settingsNotFound(), 'Nothing was stored yet')],
  })
  async find(@SettingsOwner() ownerId: string): Promise<StoredSettingsDto> {
    return toStoredSettingsDto(await this.settings.find(ownerId));
  }
}
