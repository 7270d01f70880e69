import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiBodyExamples } from '../common/openapi/api-body-examples.decorator.js';
import { ApiProblems } from '../common/openapi/api-problems.decorator.js';
import { invalidInput } from '../common/openapi/documented-error.js';
import { SettingsDto } from './dto/settings.dto.js';
import { SettingsStoredDto } from './dto/settings-stored.dto.js';
import { StoredSettingsDto } from './dto/stored-settings.dto.js';
import { SETTINGS_EXAMPLES } from './settings.examples.js';

/** Documents `POST /api/settings`. */
export function StoreSettingsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'store_settings_api_settings_post',
      summary: 'Store settings',
      description:
        'Merges the given members into what is stored: all of the request, or nothing. Members left out keep their values; null clears a member unless its description says otherwise.',
    }),
    ApiBodyExamples(SettingsDto, SETTINGS_EXAMPLES),
    ApiOkResponse({
      type: SettingsStoredDto,
      description: 'Settings stored successfully',
      example: { message: 'Settings stored' },
    }),
    ApiProblems(
      {
        status: 401,
        code: 'invalid_git_token',
        detail: 'Invalid token. Please make sure it is a valid github token.',
        description: 'No valid API key, or a token that its provider rejects',
      },
      413,
      415,
      invalidInput(
        ['body', 'max_iterations'],
        'int_parsing',
        'Expected a whole number; this text is not one.',
      ),
    ),
  );
}

/** Documents `GET /api/settings`. */
export function LoadSettingsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'load_settings_api_settings_get',
      summary: 'Show settings',
      description: 'Keys, tokens and secrets are never shown, only that they are set.',
    }),
    ApiOkResponse({ type: StoredSettingsDto, description: 'The settings' }),
    ApiProblems({ status: 404, detail: 'Settings not found', description: 'Nothing was stored yet' }),
  );
}
