import { Body, Controller, DefaultValuePipe, Post } from '@nestjs/common';
import { ApiProperty, ApiPropertyOptional, ApiSchema, ApiTags } from '@nestjs/swagger';
import type { JsonObject } from '@slipway/common/json-access.js';
import { UserId } from '../../auth/auth.decorators.js';
import { ApiRoute, thrown } from '@slipway/api/openapi/api-route.js';
import { ANY_OBJECT } from '@slipway/api/openapi/responses.js';
import { Text } from '@slipway/api/validation/field-decorators.js';
import { InputValidationPipe } from '@slipway/api/validation/validation.pipe.js';
import { LlmConfig, PROFILE_NAME } from '../profiles/profiles.dto.js';
import { OF_USERS, OfUsers } from '../settings-owner.js';
import { unknownProfile } from '../profiles/profiles.service.js';
import { TRIAL_NAMES, TRIAL_RESULTS, type TrialCheck } from '@slipway/models/model-trial.js';
import { ModelTrialService, tooManyTrials } from './model-trial.service.js';

@ApiSchema({ name: 'ModelCheckRequest' })
class ModelTrialDto {
  @Text('A stored model; without it and `llm`, that of the settings.', {
    nullable: true,
    example: 'fast',
    pattern: PROFILE_NAME,
  })
  profile?: string | null;

  @LlmConfig(
    'The model, its address, key and parameters, in place of a stored one. Without a key, that of the settings is used if it is for the same server.',
  )
  llm?: JsonObject | null;
}

class ModelCheckItemDto implements TrialCheck {
  @ApiProperty({ enum: TRIAL_NAMES, example: 'tools_native' }) name: TrialCheck['name'];
  @ApiProperty({ enum: TRIAL_RESULTS, example: 'no' }) result: TrialCheck['result'];
  @ApiProperty({ example: 'It made no call of a tool; calls in text may work.' }) detail: string;

  @ApiPropertyOptional({
    ...ANY_OBJECT,
    description: 'Members of `llm` that suit the model; absent where nothing has to be set.',
    example: { native_tool_calling: false },
  })
  setting?: JsonObject;
}

@ApiSchema({ name: 'ModelCheckResponse' })
class ModelTrialResultDto {
  @ApiProperty({ example: 'openai/qwen' }) model: string;
  @ApiProperty({ type: [ModelCheckItemDto] }) checks: ModelCheckItemDto[];
}

@ApiTags('Settings')
@OfUsers(OF_USERS.modelChecks)
@Controller('api/v1/model-check')
export class ModelTrialController {
  constructor(private readonly trials: ModelTrialService) {}

  @Post()
  @ApiRoute('check_model_', 'Test what a model can do', {
    description:
      'Asks the model itself: whether it can be reached, streams, calls tools by itself and in text, makes several calls, and takes pictures; the catalogue says its context and price. It takes a minute and 10,000 tokens at most.',
    answer: { type: ModelTrialResultDto, description: 'What it can do, and what to set' },
    optionalBody: ModelTrialDto,
    examples: { settings: { summary: "The settings' own model", value: {} } },
    problems: [
      thrown(unknownProfile('fast'), 'Unknown name'),
      thrown(tooManyTrials(3_600), 'Too many tests'),
    ],
  })
  async check(
    @UserId() userId: string,
    @Body(new DefaultValuePipe({}), new InputValidationPipe(ModelTrialDto)) body: Partial<ModelTrialDto>,
  ): Promise<ModelTrialResultDto> {
    return await this.trials.check(userId, body);
  }
}
