import { Body, Controller, Get, Param, Patch } from '@nestjs/common';
import { ApiProperty, ApiSchema, ApiTags } from '@nestjs/swagger';
import type { JsonObject } from '@slipway/common/json-access.js';
import { unknownId } from '../../common/errors/domain-error.js';
import { ApiRoute, badInput, thrown } from '@slipway/api/openapi/api-route.js';
import { ANY_OBJECT, OrNull } from '@slipway/api/openapi/responses.js';
import { Text } from '@slipway/api/validation/field-decorators.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../organizations/installation-organization.js';
import { NestedSettingsDto, toShownNestedSettingsDto } from '../nested/nested-settings.dto.js';
import { NestedSettingsService } from '../nested/nested-settings.service.js';
import { ADMINISTRATORS_CHANGE, OrganizationOwner } from '../settings-owner.js';

export const UNKNOWN_ORGANIZATION = thrown(unknownId('organization'), 'Unknown, or not yours');

export class OrganizationPathDto {
  @Text("Id of the organization: the installation's, or the user's own.", {
    required: true,
    example: INSTALLATION_ORGANIZATION_ID,
  })
  organization_id: string;
}

@ApiSchema({ name: 'OrgDefaultsSettings' })
class OrganizationSettingsDto {
  @ApiProperty({ ...ANY_OBJECT, example: { agent: 'CodeActAgent' } }) agent_settings: JsonObject;
  @ApiProperty({ ...ANY_OBJECT, example: { max_iterations: 500 } }) conversation_settings: JsonObject;
  @ApiProperty({ example: true }) llm_api_key_set: boolean;
  @OrNull(null, { description: 'Always null.' }) search_api_key: null;
}

/** What clients of OpenHands know as the defaults of an organization: the settings that lie under those of its members. */
@ApiTags('Settings')
@Controller('api/organizations/:organization_id/settings')
export class OrganizationSettingsController {
  constructor(private readonly settings: NestedSettingsService) {}

  @Get()
  @ApiRoute('get_org_defaults_settings', 'Show settings of the organization', {
    description: 'Those of `GET /api/v1/settings?scope=organization`. Keys are never shown.',
    answer: { type: OrganizationSettingsDto, description: 'The settings' },
    problems: [UNKNOWN_ORGANIZATION],
  })
  async find(
    @OrganizationOwner() ownerId: string,
    @Param() _path: OrganizationPathDto,
  ): Promise<OrganizationSettingsDto> {
    const settings = await this.settings.find(ownerId);
    const { agent_settings, conversation_settings } = toShownNestedSettingsDto(settings);
    const { llm_api_key_set } = settings.row;
    return { agent_settings, conversation_settings, llm_api_key_set, search_api_key: null };
  }

  @Patch()
  @ApiRoute('update_org_defaults_settings', 'Change settings of the organization', {
    description:
      'As `POST /api/v1/settings?scope=organization`: diffs, and members of the flat settings beside them. Administrators alone, by keys with the scope `admin` too.',
    answer: { type: OrganizationSettingsDto, description: 'The settings as they are now' },
    problems: [UNKNOWN_ORGANIZATION, ADMINISTRATORS_CHANGE],
    invalid: badInput('body.agent_settings', 'Expected the changes alone: send them as agent_settings_diff.'),
  })
  async change(
    @OrganizationOwner() ownerId: string,
    @Param() path: OrganizationPathDto,
    @Body() body: NestedSettingsDto,
    @Body() given: Record<string, unknown>,
  ): Promise<OrganizationSettingsDto> {
    await this.settings.store(ownerId, body, given);
    return this.find(ownerId, path);
  }
}
