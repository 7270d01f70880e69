import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query, UseGuards } from '@nestjs/common';
import {
  ApiCreatedResponse,
  ApiNoContentResponse,
  ApiOkResponse,
  ApiOperation,
  ApiSecurity,
  ApiTags,
} from '@nestjs/swagger';
import { ApiProblems } from '../common/openapi/api-problems.decorator.js';
import { AdminGuard } from './admin.guard.js';
import { CreateUserDto } from './dto/create-user.dto.js';
import { SearchUsersQueryDto } from './dto/search-users-query.dto.js';
import { UserIdDto } from './dto/user-id.dto.js';
import { UserPageDto, toUserPageDto } from './dto/user-page.dto.js';
import { UserDto, toUserDto } from './dto/user.dto.js';
import { UsersService } from './users.service.js';

@ApiTags('Users')
@ApiSecurity('APIKeyHeader')
@UseGuards(AdminGuard)
@Controller('api/v1/users')
export class UsersController {
  constructor(private readonly users: UsersService) {}

  @Post()
  @ApiOperation({
    summary: 'Create a user',
    description: 'Administrators only. Then issue a key with `user_id`.',
  })
  @ApiCreatedResponse({ type: UserDto, description: 'The new user' })
  @ApiProblems(403, { status: 409, detail: 'A user with this email address exists already.' }, 413, 415, 422)
  async create(@Body() body: CreateUserDto): Promise<UserDto> {
    return toUserDto(await this.users.create(body.email, body.name ?? null));
  }

  @Get()
  @ApiOperation({
    summary: 'Look up users',
    description: 'Administrators only. In the order of email addresses.',
  })
  @ApiOkResponse({ type: UserPageDto, description: 'A page of users' })
  @ApiProblems(403, 422)
  async search(@Query() query: SearchUsersQueryDto): Promise<UserPageDto> {
    return toUserPageDto(
      await this.users.search({ email: query.email__eq }, query.limit ?? 100, query.page_id),
    );
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({
    summary: 'Remove a user',
    description: 'Administrators only. Ends the keys and removes tokens, secrets and settings of the user.',
  })
  @ApiNoContentResponse({ description: 'Removed' })
  @ApiProblems(403, { status: 404, detail: 'There is no user with this id.' }, 409, 422)
  async remove(@Param() { id }: UserIdDto): Promise<void> {
    await this.users.remove(id);
  }
}
