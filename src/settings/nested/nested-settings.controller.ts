import { Body, Controller, Get, Post } from '@nestjs/common';
import { type ApiResponseNoStatusOptions, ApiTags } from '@nestjs/swagger';
import { ApiRoute, badInput } from '@slipway/api/openapi/api-route.js';
import { INVALID_TOKEN } from '../../git-providers/git-provider-problem.js';
import { SettingsStoredDto, toSettingsStoredDto } from '../flat/settings.dto.js';
import {
  NestedSettingsDto,
  ShownNestedSettingsDto,
  toShownNestedSettingsDto,
} from './nested-settings.dto.js';
import { NestedSettingsService } from './nested-settings.service.js';
import { ADMINISTRATORS_CHANGE, SettingsOwner } from '../settings-owner.js';
import { AGENT_SCHEMA, CONVERSATION_SCHEMA, type SettingsSchema } from '@slipway/settings/setting-fields.js';

const EXAMPLES = {
  language: { summary: 'One member; all others stay', value: { language: 'en' } },
  toolServer: {
    summary: 'Add one tool server, remove another, keep the rest',
    value: {
      agent_settings_diff: {
        mcp_config: {
          files: { transport: 'stdio', command: 'npx', args: ['-y', 'files-server'] },
          old: null,
        },
      },
    },
  },
};

/** The settings in the form that newer clients use; `/api/settings` shows the same rows. */
@ApiTags('Settings')
@Controller('api/v1/settings')
export class NestedSettingsController {
  constructor(private readonly settings: NestedSettingsService) {}

  @Get()
  @ApiRoute('load_settings_', 'Show settings, nested', {
    description:
      'The settings of `/api/settings` in the form of newer clients; the defaults for a user who stored none. Secrets are never shown.',
    answer: { type: ShownNestedSettingsDto, description: 'The settings' },
  })
  async find(@SettingsOwner() ownerId: string): Promise<ShownNestedSettingsDto> {
    return toShownNestedSettingsDto(await this.settings.find(ownerId));
  }

  @Post()
  @ApiRoute('store_settings_', 'Store settings, nested', {
    description:
      'Merges the diffs and the members beside them into what is stored: all of the request, or nothing. Members that this service has no use for are kept and shown.',
    answer: {
      type: SettingsStoredDto,
      description: 'Settings stored successfully',
      example: { message: 'Settings stored' },
    },
    examples: EXAMPLES,
    problems: [INVALID_TOKEN, ADMINISTRATORS_CHANGE],
    invalid: badInput('body.agent_settings', 'Expected the changes alone: send them as agent_settings_diff.'),
  })
  async store(
    @SettingsOwner() ownerId: string,
    @Body() body: NestedSettingsDto,
    @Body() given: Record<string, unknown>,
  ): Promise<SettingsStoredDto> {
    return toSettingsStoredDto(await this.settings.store(ownerId, body, given));
  }

  @Get('agent-schema')
  @ApiRoute('load_settings_schema_', 'Describe agent settings', {
    description: 'Sections of fields, from which clients build forms.',
    answer: schemaAnswer('AgentSettings'),
  })
  agentSchema(): SettingsSchema {
    return AGENT_SCHEMA;
  }

  @Get('conversation-schema')
  @ApiRoute('load_conversation_settings_schema_', 'Describe conversation settings', {
    description: 'Sections of fields, from which clients build forms.',
    answer: schemaAnswer('ConversationSettings'),
  })
  conversationSchema(): SettingsSchema {
    return CONVERSATION_SCHEMA;
  }
}

function schemaAnswer(modelName: string): ApiResponseNoStatusOptions {
  return {
    schema: {
      type: 'object',
      properties: { model_name: { type: 'string' }, sections: { type: 'array', items: { type: 'object' } } },
      required: ['model_name', 'sections'],
    },
    description: 'The schema',
    example: { model_name: modelName, sections: [] },
  };
}
