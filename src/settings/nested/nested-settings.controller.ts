import { Body, Controller, Get, HttpCode, Post } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../../auth/auth.decorators.js';
import { type SettingsStoredDto, toSettingsStoredDto } from '../flat/settings.dto.js';
import {
  NestedSettingsDto,
  type ShownNestedSettingsDto,
  toShownNestedSettingsDto,
} from './nested-settings.dto.js';
import {
  AgentSchemaOperation,
  ConversationSchemaOperation,
  LoadNestedSettingsOperation,
  StoreNestedSettingsOperation,
} from './nested-settings.openapi.js';
import { NestedSettingsService } from './nested-settings.service.js';
import { AGENT_SCHEMA, CONVERSATION_SCHEMA, type SettingsSchema } from './settings-schema.js';

/** The settings in the form that newer clients use; `/api/settings` shows the same rows. */
@ApiTags('Settings')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/settings')
export class NestedSettingsController {
  constructor(private readonly settings: NestedSettingsService) {}

  @Get()
  @LoadNestedSettingsOperation()
  async find(@CurrentUser() user: AuthUser): Promise<ShownNestedSettingsDto> {
    return toShownNestedSettingsDto(await this.settings.find(user.id));
  }

  @Post()
  @HttpCode(200)
  @StoreNestedSettingsOperation()
  async store(
    @CurrentUser() user: AuthUser,
    @Body() body: NestedSettingsDto,
    @Body() given: Record<string, unknown>,
  ): Promise<SettingsStoredDto> {
    return toSettingsStoredDto(await this.settings.store(user.id, body, given));
  }

  @Get('agent-schema')
  @AgentSchemaOperation()
  agentSchema(): SettingsSchema {
    return AGENT_SCHEMA;
  }

  @Get('conversation-schema')
  @ConversationSchemaOperation()
  conversationSchema(): SettingsSchema {
    return CONVERSATION_SCHEMA;
  }
}
