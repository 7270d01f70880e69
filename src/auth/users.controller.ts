import {
  applyDecorators,
  Body,
  Controller,
  Delete,
  Get,
  HttpCode,
  Param,
  Post,
  Query,
  UseGuards,
} from '@nestjs/common';
import {
  ApiCreatedResponse,
  ApiNoContentResponse,
  ApiOkResponse,
  ApiOperation,
  ApiSecurity,
  ApiTags,
} from '@nestjs/swagger';
import { ApiProblems, invalidInput } from '../common/openapi/problems.js';
import { AdminGuard } from './auth.guard.js';
import {
  CreateUserDto,
  SearchUsersQueryDto,
  toUserDto,
  toUserPageDto,
  UserDto,
  UserIdDto,
  UserPageDto,
} from './users.dto.js';
import { UsersService } from './users.service.js';

/** Documents `POST /api/v1/users`. */
function CreateUserOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'create_user',
      summary: 'Create a user',
      description: 'Administrators only. Then issue a key with `user_id`.',
    }),
    ApiCreatedResponse({ type: UserDto, description: 'The new user' }),
    ApiProblems(
      403,
      {
        status: 409,
        code: 'conflict',
        detail: 'A user with this email address exists already.',
        description: 'The address is taken',
      },
      413,
      415,
      invalidInput(['body', 'email'], 'value_error', 'Expected an email address such as ada@example.com.'),
    ),
  );
}

/** Documents `GET /api/v1/users`. */
function SearchUsersOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_users',
      summary: 'Look up users',
      description: 'Administrators only. In the order of email addresses.',
    }),
    ApiOkResponse({ type: UserPageDto, description: 'A page of users' }),
    ApiProblems(
      403,
      invalidInput(['query', 'limit'], 'less_than_equal', 'Expected a number of at most 100.'),
    ),
  );
}

/** Documents `DELETE /api/v1/users/{id}`. */
function DeleteUserOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'delete_user',
      summary: 'Remove a user',
      description: 'Administrators only. Ends the keys and removes tokens, secrets and settings of the user.',
    }),
    ApiNoContentResponse({ description: 'Removed' }),
    ApiProblems(
      403,
      { status: 404, detail: 'There is no user with this id.', description: 'Unknown user' },
      {
        status: 409,
        code: 'conflict',
        detail: 'The last administrator cannot be removed.',
        description: 'Nobody could get in any more',
      },
      invalidInput(['path', 'id'], 'uuid_parsing', 'Expected a UUID: 32 hexadecimal digits.'),
    ),
  );
}

@ApiTags('Users')
@ApiSecurity('APIKeyHeader')
@UseGuards(AdminGuard)
@Controller('api/v1/users')
export class UsersController {
  constructor(private readonly users: UsersService) {}

  @Post()
  @CreateUserOperation()
  async create(@Body() body: CreateUserDto): Promise<UserDto> {
    return toUserDto(await this.users.create(body.email, body.name ?? null));
  }

  @Get()
  @SearchUsersOperation()
  async search(@Query() query: SearchUsersQueryDto): Promise<UserPageDto> {
    return toUserPageDto(
      await this.users.search({ email: query.email__eq }, query.limit ?? 100, query.page_id),
    );
  }

  @Delete(':id')
  @HttpCode(204)
  @DeleteUserOperation()
  async remove(@Param() { id }: UserIdDto): Promise<void> {
    await this.users.remove(id);
  }
}
